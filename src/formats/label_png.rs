//! The class of each pixel as an indexed picture: 0 is background, `k + 1` is class `k`.

use png::{BitDepth, ColorType, Encoder};

/// Classes that an indexed picture has room for, beside the background.
const INDEXED: usize = 255;

/// The PNG file of a mask of one class.
///
/// Up to 255 classes it is an indexed picture of eight bits, with the colours of PASCAL VOC; with
/// more, a grey one of sixteen bits.
pub fn encode(width: u32, inside: &[bool], class: usize, classes: usize) -> Vec<u8> {
    let height = (inside.len() / width as usize) as u32;
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    let label = class + 1;
    let pixels: Vec<u8> = if classes <= INDEXED {
        encoder.set_color(ColorType::Indexed);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_palette((0..=classes.max(label)).flat_map(colour).collect::<Vec<u8>>());
        inside.iter().map(|&inside| if inside { label as u8 } else { 0 }).collect()
    } else {
        encoder.set_color(ColorType::Grayscale);
        encoder.set_depth(BitDepth::Sixteen);
        let label = (label as u16).to_be_bytes();
        inside.iter().flat_map(|&inside| if inside { label } else { [0, 0] }).collect()
    };
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    written.expect("whole rows in memory can be written to memory");
    file
}

/// The colour of a label in PASCAL VOC: each bit of the label goes to a bit of one channel, the
/// lowest to the highest.
pub fn colour(label: usize) -> [u8; 3] {
    let channel = |first: usize| {
        (0..8)
            .filter(|bit| label >> (3 * bit + first) & 1 == 1)
            .fold(0, |sum, bit| sum | 0x80 >> bit)
    };
    [channel(0), channel(1), channel(2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_pascal_voc() {
        let expected = [[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128]];
        assert_eq!([0, 1, 2, 3, 4].map(colour), expected);
        assert_eq!(colour(15), [192, 128, 128]);
        assert_eq!(colour(20), [0, 64, 128]);
    }

    #[test]
    fn labels_come_back_as_indices_and_beyond_255_classes_as_grey() {
        let inside = [true, false, false, true];
        let read = |file: &[u8]| {
            let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
            let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut bytes).unwrap();
            (info.color_type, bytes)
        };
        let (kind, bytes) = read(&encode(2, &inside, 2, 3));
        assert_eq!((kind, bytes), (ColorType::Indexed, vec![3, 0, 0, 3]));
        let (kind, bytes) = read(&encode(2, &inside, 299, 300));
        assert_eq!((kind, bytes), (ColorType::Grayscale, vec![1, 44, 0, 0, 0, 0, 1, 44]));
    }
}
