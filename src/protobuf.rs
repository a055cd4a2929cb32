//! Protocol Buffers, as far as writing needs them.
//!
//! A crate such as `prost` also reads, and brings a derive; two kinds of files are only written here.
//!
//! A message is a sequence of fields, each a key and a value; the key holds the field's number and
//! how its value is written.

/// A message that is being written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message(Vec<u8>);

/// How the value of a field is written.
const VARINT: u64 = 0;
const SIXTY_FOUR_BITS: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const THIRTY_TWO_BITS: u64 = 5;

impl Message {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds an integer.
    pub(crate) fn int(mut self, field: u64, value: i64) -> Self {
        self.key(field, VARINT);
        // Negative numbers take ten bytes, as the format has it.
        self.varint(value as u64);
        self
    }

    /// Adds a number of single precision.
    pub(crate) fn float(mut self, field: u64, value: f32) -> Self {
        self.key(field, THIRTY_TWO_BITS);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds a number of double precision.
    pub(crate) fn double(mut self, field: u64, value: f64) -> Self {
        self.key(field, SIXTY_FOUR_BITS);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds bytes.
    pub(crate) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.key(field, LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Adds text.
    pub(crate) fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// Adds a message within this one.
    pub(crate) fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// Adds several messages under one number.
    pub(crate) fn messages<'a>(self, field: u64, all: impl IntoIterator<Item = &'a Self>) -> Self {
        all.into_iter().fold(self, |message, value| message.message(field, value))
    }

    /// The message as written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    /// Seven bits at a time, the lowest first; the highest bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_format_s_documentation_shows() {
        // "Encoding" of the Protocol Buffers documentation: 150 in field 1, "testing" in field 2.
        assert_eq!(Message::new().int(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        let testing = [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67];
        assert_eq!(Message::new().text(2, "testing").into_bytes(), testing);
        // A message within a message: field 3 of it.
        let inner = Message::new().int(1, 150);
        assert_eq!(Message::new().message(3, &inner).into_bytes(), [0x1a, 3, 0x08, 0x96, 0x01]);
    }

    #[test]
    fn numbers_of_fixed_width_are_little_endian() {
        assert_eq!(Message::new().float(2, 1.0).into_bytes(), [0x15, 0, 0, 0x80, 0x3f]);
        let double = [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
        assert_eq!(Message::new().double(1, 1.0).into_bytes(), double);
        assert_eq!(Message::new().int(1, -1).into_bytes().len(), 11);
    }
}
