//! Event files of TensorBoard, read record by record as TensorBoard does.

use std::{fs, path::Path, process::Command};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::{
    data::synthetic::{self, SyntheticSpec},
    formats::tensorboard::crc32c,
};
use serde_json::Value;

/// A field of a protocol buffer: its number, and its value as bytes.
type Field = (u64, Vec<u8>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<Field> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => varint(&mut bytes).to_le_bytes().to_vec(),
            kind => {
                let length = match kind {
                    1 => 8,
                    5 => 4,
                    _ => varint(&mut bytes) as usize,
                };
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                value.to_vec()
            }
        };
        found.push((key >> 3, value));
    }
    found
}

fn field(fields: &[Field], number: u64) -> &[u8] {
    &fields.iter().find(|(found, _)| *found == number).unwrap().1
}

/// The events of a file, whose checksums must be right.
fn events(path: &Path) -> Vec<Vec<Field>> {
    let file = fs::read(path).unwrap();
    let mut rest = file.as_slice();
    let mut events = Vec::new();
    let checked = |bytes: &[u8], sum: &[u8]| {
        let masked = crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8);
        assert_eq!(sum, masked.to_le_bytes());
    };
    while !rest.is_empty() {
        let (length, after) = rest.split_at(8);
        checked(length, &after[..4]);
        let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
        let event = &after[4..4 + length];
        checked(event, &after[4 + length..8 + length]);
        events.push(fields(event));
        rest = &after[8 + length..];
    }
    events
}

/// The numbers of an event by their tags.
fn scalars(event: &[Field]) -> Vec<(String, f32)> {
    let values = fields(field(event, 5));
    let scalar = |(_, value): &Field| {
        let value = fields(value);
        let number = f32::from_le_bytes(field(&value, 2).try_into().unwrap());
        (String::from_utf8(field(&value, 1).to_vec()).unwrap(), number)
    };
    values.iter().map(scalar).collect()
}

#[test]
fn every_epoch_is_an_event_with_the_numbers_of_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let spec = SyntheticSpec { classes: 2, train: 6, valid: 4, test: 2, side: 48, seed: 1 };
    synthetic::write(&folder.path().join("data"), &spec, || {}).unwrap();
    let train = |more: &[&str]| {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.current_dir(folder.path()).args(["train", "--data", "data", "--out", "run"]);
        command.args(["--set", "model.backbone=tiny", "--set", "preprocess.crop=32"]);
        command.args(["--set", "model.output_stride=8"]);
        command.args(["--set", "preprocess.upscale_short_side=0", "--set", "train.batch_size=3"]);
        command.args(["--method", "minmax", "--tensorboard"]).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let run = folder.path().join("run");
    let path = run.join("tensorboard/events.out.tfevents.pinpoint");
    for (epochs, more) in [(2, &["--epochs", "2"][..]), (3, &["--epochs", "3", "--resume"])] {
        train(more);
        let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        let records: Vec<Value> =
            metrics.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let events = events(&path);
        assert_eq!((events.len(), records.len()), (1 + epochs, epochs));
        assert_eq!(field(&events[0], 3), b"brain.Event:2");
        let mut last = 0.0;
        for (record, event) in records.iter().zip(&events[1..]) {
            let time = f64::from_le_bytes(field(event, 1).try_into().unwrap());
            assert!(time > last, "time goes on");
            last = time;
            let step = u64::from_le_bytes(field(event, 2).try_into().unwrap());
            assert_eq!(record["epoch"], step);
            let scalars = scalars(event);
            for (tag, key) in [
                ("loss/localizer", "loss_localizer"),
                ("loss/foreground", "loss_foreground"),
                ("loss/background", "loss_background"),
                ("loss/validation", "valid_loss"),
                ("error/training", "train_error"),
                ("error/validation", "valid_error"),
                ("error/validation_localizer", "valid_localizer_error"),
                ("rate/learning", "learning_rate"),
            ] {
                let (_, found) = scalars.iter().find(|(found, _)| found == tag).unwrap();
                assert_eq!(*found, record[key].as_f64().unwrap() as f32, "{tag}");
            }
        }
    }
}
