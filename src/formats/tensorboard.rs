//! Event files of TensorBoard: numbers over the epochs of a run.
//!
//! A file is a sequence of records, each a length and an event with a checksum of both:
//!
//! ```text
//! length, 8 bytes   masked CRC of it   event, a protocol buffer   masked CRC of it
//! ```

use crate::{protobuf::Message, run::EpochRecord};

/// The record that a file begins with; times are in seconds since 1970.
pub fn header(time: f64) -> Vec<u8> {
    record(&Message::new().double(1, time).text(3, "brain.Event:2").into_bytes())
}

/// A record of numbers, each under its tag.
pub fn scalars(time: f64, step: i64, values: &[(&str, f64)]) -> Vec<u8> {
    let value = |(tag, value): &(&str, f64)| Message::new().text(1, tag).float(2, *value as f32);
    let values: Vec<Message> = values.iter().map(value).collect();
    let summary = Message::new().messages(1, &values);
    record(&Message::new().double(1, time).int(2, step).message(5, &summary).into_bytes())
}

/// The record of an epoch.
pub fn epoch(time: f64, record: &EpochRecord) -> Vec<u8> {
    let values = [
        ("loss/localizer", Some(record.loss_localizer)),
        ("error/training", Some(record.train_error)),
        ("rate/learning", Some(record.learning_rate)),
        ("rate/localizer_passes", Some(record.localizer_passes)),
        ("time/epoch_seconds", Some(record.seconds)),
        ("loss/foreground", record.loss_foreground),
        ("loss/background", record.loss_background),
        ("loss/validation", record.valid_loss),
        ("error/validation", record.valid_error),
        ("error/validation_localizer", record.valid_localizer_error),
    ];
    let values: Vec<_> =
        values.into_iter().filter_map(|(tag, value)| Some((tag, value?))).collect();
    scalars(time, record.epoch as i64, &values)
}

fn record(event: &[u8]) -> Vec<u8> {
    let length = (event.len() as u64).to_le_bytes();
    let sum = |bytes: &[u8]| masked(crc32c(bytes)).to_le_bytes();
    [&length[..], &sum(&length), event, &sum(event)].concat()
}

/// A checksum as the file has it: changed, since checksums of data with checksums are weak.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit: records are short.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let reversed_polynomial = 0x82f6_3b78;
    !bytes.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { reversed_polynomial } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn the_first_record_is_as_tensorflow_writes_it() {
        // Length 24; 09 and the time as a double; 1a 0d and the version.
        let file = header(0.0);
        assert_eq!(file[..8], 24_u64.to_le_bytes());
        assert_eq!(file[12..21], [9, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&file[21..36], b"\x1a\x0dbrain.Event:2");
        assert_eq!(file.len(), 8 + 4 + 24 + 4);
    }
}
