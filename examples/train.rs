//! Trains on a dataset: `cargo run --release --example train -- DATA RUN [METHOD] [WEIGHTS]`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;

use pinpoint::{
    TrainRequest, method, train,
    train::{Event, Observer},
};

/// Prints what happens.
struct Printer;

impl Observer for Printer {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Opened(dataset) => println!("{} training images", dataset.train.len()),
            Event::Note(text) | Event::Warning(text) => println!("{text}"),
            Event::Epoch(record) => {
                println!("epoch {}: error {:.1} %", record.epoch, record.train_error);
            }
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [data, run, rest @ ..] = &arguments[..] else {
        return Err("usage: train DATA RUN [METHOD] [WEIGHTS]".into());
    };
    let config = method::published(rest.first().map_or("probe", String::as_str))?;
    let weights = rest.get(1).map(Into::into);
    let request = TrainRequest { weights, ..TrainRequest::new(data, run, config) };
    let trained = train(&request, &mut Printer)?;
    println!("{:?}: {}", trained.ending, trained.run.best().display());
    Ok(())
}
