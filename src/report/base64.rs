//! Bytes as text, for pictures inside the page (RFC 4648): ten lines, less than a crate's settings.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A picture as an address that needs no file; `kind` is that of `image/png`.
pub(in crate::report) fn image_url(kind: &str, bytes: &[u8]) -> String {
    format!("data:image/{kind};base64,{}", encode(bytes))
}

/// Three bytes become four letters; the last group is filled up with `=`.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for letter in 0..4 {
            let six = (bits >> (18 - 6 * letter)) & 63;
            text.push(if letter > group.len() { '=' } else { ALPHABET[six as usize].into() });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_hold() {
        let examples = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let expected = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        assert_eq!(examples.map(|text| encode(text.as_bytes())), expected);
        assert_eq!(encode(&[255, 254, 251]), "//77");
    }
}
