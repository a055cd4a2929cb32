//! Time that a file may take to be decoded.
//!
//! A file of a few bytes can keep a decoder busy for minutes, and no decoder can be asked to
//! stop. It therefore works on a thread of its own, which is left behind if it takes too long.

use std::{path::Path, sync::mpsc, thread, time::Duration};

use super::source::guard;
use crate::error::{Error, Result};

/// Seconds that any file may take, and more for each megapixel that is allowed: a hundred
/// times what decoders need.
const SECONDS: f64 = 20.0;
const SECONDS_PER_MEGAPIXEL: f64 = 0.25;
/// Number of parts in which this time is waited.
const PARTS: u32 = 50;

/// How long a file may take where images of so many megapixels are allowed.
pub(super) fn of(max_megapixels: u32) -> Duration {
    Duration::from_secs_f64(SECONDS + SECONDS_PER_MEGAPIXEL * f64::from(max_megapixels))
}

/// The result of `decode` on a file, or an error that names the file if that takes too long.
pub(super) fn within<T: Send + 'static>(
    budget: Duration,
    path: &Path,
    decode: impl FnOnce(&Path) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (send, receive) = mpsc::channel();
    let file = path.to_owned();
    let work = move || {
        // The receiver is gone if it took too long.
        let _ = send.send(guard(&file, || decode(&file)));
    };
    thread::Builder::new().spawn(work).map_err(Error::file("start a thread to decode", path))?;
    in_parts(budget, |part| receive.recv_timeout(part).ok()).unwrap_or_else(|| {
        let problem = format!("image that takes more than {:.0} s to decode", budget.as_secs_f64());
        let remedy = "save it as PNG, or smaller; a higher `data.max_megapixels` allows more time";
        Err(Error::image(path, problem, remedy))
    })
}

/// Waits part by part until there is a result: time in which the whole process is stopped, as by
/// Ctrl-Z, must not count against the decoder beyond one part.
fn in_parts<T>(budget: Duration, mut wait: impl FnMut(Duration) -> Option<T>) -> Option<T> {
    (0..PARTS).find_map(|_| wait(budget / PARTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_stopped_goes_on_waiting() {
        let budget = Duration::from_millis(50);
        let mut parts = 0;
        let answer = in_parts(budget, |part| {
            parts += 1;
            // Stopped for longer than the whole budget, and then on time.
            thread::sleep(if parts == 1 { 2 * budget } else { part });
            (parts == 3).then_some("decoded")
        });
        assert_eq!(answer, Some("decoded"));
    }

    #[test]
    fn a_decoder_that_never_ends_is_left_behind_and_its_file_named() {
        let endless = |_: &Path| -> Result<()> {
            loop {
                thread::park();
            }
        };
        let error = within(Duration::from_millis(20), Path::new("slow.webp"), endless);
        let message = error.unwrap_err().to_string();
        assert!(message.contains("`slow.webp`") && message.contains("more than 0 s"), "{message}");
    }

    #[test]
    fn what_is_decoded_in_time_is_handed_over() {
        let size = within(of(1), Path::new("a.png"), |path| Ok(path.as_os_str().len()));
        assert_eq!(size.unwrap(), 5);
    }

    #[test]
    fn a_decoder_that_panics_is_told_from_one_that_is_slow() {
        let result = within(of(1), Path::new("a.png"), |_| -> Result<()> { panic!("damaged") });
        assert!(result.unwrap_err().to_string().contains("cannot cope with"));
    }

    #[test]
    fn more_pixels_are_given_more_time() {
        assert_eq!((of(0).as_secs(), of(200).as_secs()), (20, 70));
    }
}
