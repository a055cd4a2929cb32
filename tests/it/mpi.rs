//! Training by several processes: the real command, started by `mpirun` on this machine.

#[cfg(feature = "mpi")]
mod several {
    use std::{
        fs,
        path::Path,
        process::{Child, Command, Output, Stdio},
        thread,
        time::Duration,
    };

    use pinpoint::train::EpochRecord;

    use crate::train::{Workshop, weights};

    /// The same command, started as so many processes.
    fn mpirun(ranks: usize, command: &Command) -> Command {
        let mut mpirun = Command::new("mpirun");
        mpirun.args(["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]);
        // Containers forbid one process to read another's memory, which is only a shortcut.
        mpirun.args(["--mca", "btl_vader_single_copy_mechanism", "none"]);
        // Ranks that wait would otherwise take the cores from those that compute.
        mpirun.args(["--mca", "mpi_yield_when_idle", "1"]);
        mpirun.arg("-n").arg(ranks.to_string());
        mpirun.arg(command.get_program()).args(command.get_args());
        mpirun
    }

    fn train(workshop: &Workshop, ranks: usize, run: &str, more: &[&str]) -> Output {
        mpirun(ranks, &workshop.command(run, more)).output().unwrap()
    }

    fn assert_trained(output: &Output) {
        assert!(output.status.success(), "{output:?}");
    }

    fn records(run: &Path) -> Vec<EpochRecord> {
        let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn count(output: &Output, text: &str) -> usize {
        String::from_utf8_lossy(&output.stderr).matches(text).count()
    }

    #[test]
    fn the_same_number_of_ranks_gives_the_same_bytes_and_one_rank_those_of_no_mpi() {
        let workshop = Workshop::new();
        let dir = |name: &str| workshop.run_dir(name);
        assert_trained(&workshop.train("plain", &["--threads", "1"]));
        assert_trained(&train(&workshop, 1, "one", &["--threads", "1"]));
        assert!(weights(&dir("plain")) == weights(&dir("one")), "one rank differs from no MPI");
        for ranks in [2, 3] {
            let runs = ["1", "2"].map(|threads| {
                let run = format!("{ranks} ranks, {threads} threads");
                let output = train(&workshop, ranks, &run, &["--threads", threads]);
                assert_trained(&output);
                assert_eq!(count(&output, "done;"), 1, "only one rank speaks: {output:?}");
                weights(&dir(&run))
            });
            assert!(runs[0] == runs[1], "{ranks} ranks gave other bytes the second time");
            assert!(runs[0] != weights(&dir("plain")), "{ranks} ranks round otherwise than one");
        }
    }

    #[test]
    fn several_ranks_learn_what_one_process_learns() {
        for (method, more) in [
            ("minmax", &["--set", "mask.gradient=through"][..]),
            ("cam-avg", &["--set", "model.recalibrate=true"]),
            ("unet", &["--set", "unet.width=4", "--set", "unet.depth=2"]),
        ] {
            let workshop = Workshop::new();
            // Of three batches the last has two images: one of three ranks has none of them.
            let batches = ["--method", method, "--set", "train.batch_size=5"];
            let gently = ["--epochs", "1", "--set", "optimizer.learning_rate=1e-4"];
            let more: Vec<&str> = batches.into_iter().chain(gently).chain(more.to_vec()).collect();
            assert_trained(&workshop.train("one", &more));
            assert_trained(&train(&workshop, 3, "three", &more));
            let [one, three] =
                ["one", "three"].map(|run| records(&workshop.run_dir(run)).remove(0));
            let near = |a: f64, b: f64| (a - b).abs() <= 2e-3 * b.abs();
            assert!(near(three.loss_localizer, one.loss_localizer), "{three:?} {one:?}");
            assert_eq!(three.loss_foreground.is_some(), one.loss_foreground.is_some());
            for (three, one) in [
                (three.loss_foreground, one.loss_foreground),
                (three.loss_background, one.loss_background),
                (three.valid_loss, one.valid_loss),
            ] {
                assert!(near(three.unwrap_or(0.0), one.unwrap_or(0.0)), "{three:?} {one:?}");
            }
        }
    }

    /// The processes that `mpirun` has started.
    fn ranks(mpirun: &Child) -> Vec<u32> {
        let path = format!("/proc/{0}/task/{0}/children", mpirun.id());
        let children = fs::read_to_string(path).unwrap();
        children.split_whitespace().map(|id| id.parse().unwrap()).collect()
    }

    #[test]
    fn a_rank_that_dies_stops_the_job_and_the_run_resumes_to_the_same_bytes() {
        let workshop = Workshop::new();
        assert_trained(&train(&workshop, 2, "whole", &["--epochs", "9"]));
        for rank in [0, 1] {
            let run = format!("rank {rank} dies");
            let mut command = mpirun(2, &workshop.command(&run, &["--epochs", "9"]));
            let mut job = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            while !workshop.run_dir(&run).join("metrics.jsonl").exists() {
                assert!(job.try_wait().unwrap().is_none(), "it must live through an epoch");
                thread::sleep(Duration::from_millis(5));
            }
            let victim = ranks(&job)[rank].to_string();
            assert!(Command::new("kill").args(["-9", &victim]).status().unwrap().success());
            assert!(!job.wait().unwrap().success(), "the job must not outlive its rank");

            for wrong in [1, 3] {
                let output = train(&workshop, wrong, &run, &["--epochs", "9", "--resume"]);
                assert!(!output.status.success());
                assert_eq!(count(&output, "is trained by 2 processes"), 1, "{output:?}");
                assert_eq!(count(&output, "mpirun -n 2"), 1, "{output:?}");
            }
            assert_trained(&train(&workshop, 2, &run, &["--epochs", "9", "--resume"]));
            let [whole, resumed] = ["whole", &run].map(|run| weights(&workshop.run_dir(run)));
            assert!(whole == resumed, "rank {rank} changed the weights by dying");
        }
    }

    #[test]
    fn what_one_rank_cannot_do_stops_all_with_one_message() {
        let workshop = Workshop::new();
        let output = train(&workshop, 2, "probe", &["--method", "probe"]);
        assert!(!output.status.success());
        assert_eq!(count(&output, "several processes cannot share"), 1, "{output:?}");
        assert!(!workshop.run_dir("probe").exists());

        // One image, which is one rank's, is found to be damaged once training has begun.
        let images = workshop.folder.path().join("data/train");
        let mut files: Vec<_> = walk(&images).collect();
        files.sort();
        let damaged = files.last().unwrap();
        fs::write(damaged, "not an image any more").unwrap();
        let output = train(&workshop, 3, "damaged", &[]);
        assert!(!output.status.success());
        let name = damaged.file_name().unwrap().to_str().unwrap();
        assert_eq!(count(&output, "error:"), 1, "{output:?}");
        assert_eq!(count(&output, name), 1, "{output:?}");
    }

    fn walk(folder: &Path) -> Box<dyn Iterator<Item = std::path::PathBuf>> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        Box::new(entries.flat_map(|path| {
            if path.is_dir() { walk(&path) } else { Box::new(std::iter::once(path)) }
        }))
    }
}

#[cfg(not(feature = "mpi"))]
#[test]
fn one_of_several_processes_that_know_nothing_of_each_other_does_nothing() {
    use crate::train::{Workshop, failure};

    let workshop = Workshop::new();
    let output = workshop.command("run", &[]).env("OMPI_COMM_WORLD_SIZE", "2").output().unwrap();
    let message = failure(&output);
    assert!(message.contains("2 processes") && message.contains("--features mpi"), "{message}");
    assert!(!workshop.run_dir("run").exists());
}
