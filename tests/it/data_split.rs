//! Folds and validation splits: the published algorithm and `pinpoint data split`.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use assert_cmd::Command;
use pinpoint::data::{
    Dataset, MaskRule, OpenOptions, Sample, Truth,
    layout::Layout,
    split::{Fold, FoldPlan, Procedure, cut_validation, folds, keep_classes, write_folds},
    synthetic::{self, SyntheticSpec},
};
use proptest::prelude::*;

#[test]
fn folds_are_those_of_python() {
    let expected: Vec<(&str, usize, usize, Fold)> =
        include_str!("fixtures/splits.txt").lines().map(expected_fold).collect();
    let drawn = |procedure, sizes: &[usize]| {
        folds(&take_turns(sizes), &FoldPlan { procedure, ..FoldPlan::default() })
    };
    let glas = drawn(Procedure::Glas, &[13, 18]);
    let cub = drawn(Procedure::Cub, &[10, 9, 14]);
    assert_eq!(expected.len(), 20);
    for (procedure, s, f, fold) in expected {
        let drawn = if procedure == "glas" { &glas } else { &cub };
        assert_eq!(drawn[s][f], fold, "{procedure} split {s} fold {f}");
    }
}

#[test]
fn a_missing_validation_split_is_cut_from_train_and_the_user_is_told() {
    let mut dataset = dataset(&[10, 35, 1]);
    cut_validation(&mut dataset, 0.2, 0);
    assert_eq!(class_sizes(&dataset.valid), BTreeMap::from([(0, 2), (1, 7)]));
    assert_eq!(class_sizes(&dataset.train), BTreeMap::from([(0, 8), (1, 28), (2, 1)]));
    let notes = dataset.notes.join("\n");
    assert!(notes.contains("9 of 46 training samples"), "{notes}");
    assert!(notes.contains("class `c2` has one sample, kept for training"), "{notes}");
}

#[test]
fn a_validation_split_of_ones_own_is_left_alone() {
    let mut dataset = dataset(&[10, 10]);
    dataset.valid = dataset.train.split_off(18);
    let before = dataset.valid.clone();
    cut_validation(&mut dataset, 0.2, 0);
    assert_eq!((dataset.valid, dataset.notes), (before, vec![]));
}

#[test]
fn what_validation_chooses_nothing_for_keeps_all_its_training_images() {
    let mut dataset = dataset(&[10, 10]);
    let before = dataset.train.clone();
    cut_validation(&mut dataset, 0.0, 0);
    assert_eq!((dataset.train, dataset.valid.len(), dataset.notes), (before, 0, vec![]));
    assert_eq!(pinpoint::method::published("probe").unwrap().data.valid_fraction, 0.0);
}

#[test]
fn cut_and_first_fold_validate_the_same_samples() {
    for (layout, procedure) in [(Layout::Glas, Procedure::Glas), (Layout::Folders, Procedure::Cub)]
    {
        let mut cut = dataset(&[13, 18]);
        cut.layout = layout;
        cut_validation(&mut cut, 0.2, 0);
        let plan = FoldPlan { procedure, ..FoldPlan::default() };
        let fold = &folds(&take_turns(&[13, 18]), &plan)[0][0];
        let valid: Vec<String> = fold.valid.iter().map(|index| format!("{index}.png")).collect();
        assert_eq!(
            cut.valid.iter().map(|sample| &sample.id).collect::<Vec<_>>(),
            valid.iter().collect::<Vec<_>>()
        );
    }
}

#[test]
fn kept_classes_are_numbered_in_the_order_they_were_chosen() {
    let mut dataset = dataset(&[3, 4, 5]);
    keep_classes(&mut dataset, &[2, 0]);
    assert_eq!(dataset.classes, ["c2", "c0"]);
    assert_eq!(class_sizes(&dataset.train), BTreeMap::from([(0, 5), (1, 3)]));
}

#[test]
fn written_folds_have_the_published_format() {
    let dir = tempfile::tempdir().unwrap();
    let mut dataset = dataset(&[5, 5]);
    dataset.classes = vec!["plain".to_owned(), "with, comma".to_owned()];
    let masks = dataset.root.join("masks");
    dataset.train[0].truth.masks = vec![masks.join("0.png"), masks.join("0_1.png")];
    dataset.test = vec![dataset.train[0].clone(), dataset.train[1].clone()];
    let out = dir.path().join("folds");
    write_folds(&dataset, &FoldPlan::default(), &out, false).unwrap();

    let fold = out.join("split_1").join("fold_4");
    let read = |name: &str| fs::read_to_string(fold.join(name)).unwrap();
    assert_eq!(
        read("test_s_1_f_4.csv"),
        "0.png,masks/0.png;masks/0_1.png,plain\n1.png,,|with, comma|\n"
    );
    assert_eq!(read("train_s_1_f_4.csv").lines().count(), 8);
    assert_eq!(read("valid_s_1_f_4.csv").lines().count(), 2);
    assert_eq!(read("encoding.yaml"), "{plain: 0,\n  \"with, comma\": 1}\n");
    assert_eq!(read("seed.txt"), "0\n");
}

#[test]
fn folds_are_replaced_on_demand_but_other_folders_never() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = dataset(&[5, 5]);
    let (out, plan) = (dir.path().join("folds"), FoldPlan::default());
    let write = |replace| write_folds(&dataset, &plan, &out, replace);
    write(false).unwrap();
    assert!(write(false).unwrap_err().to_string().contains("--force"));
    write(true).unwrap();
    fs::write(out.join("thesis.tex"), "").unwrap();
    assert!(write(true).is_err());
    assert!(out.join("thesis.tex").exists());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside the folds");
}

#[test]
fn a_plan_that_cannot_be_carried_out_names_all_its_problems() {
    let plan = FoldPlan { splits: 0, folds: 6, ..FoldPlan::default() };
    let message = plan.check().unwrap_err().to_string();
    assert!(message.contains("splits") && message.contains("1..=5"), "{message}");
    assert!(FoldPlan { fraction: f64::NAN, ..FoldPlan::default() }.check().is_err());
}

#[test]
fn folds_of_a_dataset_are_read_back_with_its_images_and_masks() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let spec = SyntheticSpec { train: 40, valid: 0, test: 8, side: 32, ..SyntheticSpec::small() };
    synthetic::write(&set, &spec, || {}).unwrap();
    let folds = set.join("folds");
    split(&set, &folds).assert().success().stdout("");

    let fold = Dataset::open(&folds.join("split_1/fold_2"), &OpenOptions::default()).unwrap();
    assert_eq!([fold.train.len(), fold.valid.len(), fold.test.len()], [32, 8, 8]);
    assert_eq!(fold.classes, spec.class_names());
    assert!(fold.samples().all(|(_, sample)| sample.truth.masks.len() == 1));
    assert!(fold.problems.is_empty(), "{:?}", fold.problems);

    let refused = split(&set, &folds).assert().code(2).get_output().clone();
    assert!(String::from_utf8(refused.stderr).unwrap().contains("--force"));
    split(&set, &folds).args(["--force", "--classes", "2"]).assert().success();
    let encoding = fs::read_to_string(folds.join("split_0/fold_0/encoding.yaml")).unwrap();
    // NumPy's `RandomState(0).choice(4, 2, replace=False)` is [2, 3].
    assert_eq!(encoding, "{ringed-flower: 0,\n  striped-disc: 1}\n");
}

#[test]
fn a_dataset_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let output = split(&dir.path().join("nowhere"), &dir.path().join("folds")).assert().code(2);
    let message = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(message.contains("nowhere") && !dir.path().join("folds").exists(), "{message}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_fold_divides_the_samples_and_leaves_each_class_something_to_learn(
        sizes in prop::collection::vec(1_usize..20, 1..5),
        fraction in 0.05_f64..0.95,
        seed in 0_u64..u64::MAX,
        glas in any::<bool>(),
    ) {
        let procedure = if glas { Procedure::Glas } else { Procedure::Cub };
        let classes = take_turns(&sizes);
        let plan = FoldPlan { splits: 1, folds: 2, fraction, seed, procedure };
        for fold in &folds(&classes, &plan)[0] {
            let mut all = [&fold.train[..], &fold.valid[..]].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..sizes.iter().sum()).collect::<Vec<_>>());
            for class in &classes {
                prop_assert!(class.iter().any(|index| fold.train.contains(index)));
            }
        }
    }
}

/// Reads the datasets and folds that come with the paper from `$PINPOINT_DATA`.
#[test]
#[ignore = "needs the research data: set PINPOINT_DATA to their folder"]
fn published_glas_folds_are_regenerated_in_order() {
    let Some(data) = research_data() else { return };
    let grades = data.join("glas/Warwick QU Dataset (Released 2016_07_08)/Grade.csv");
    let text = fs::read_to_string(grades).unwrap().replace('\r', "\n");
    let rows = text.lines().skip(1).filter(|row| row.starts_with("train"));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split(',').map(str::trim).collect()).collect();
    let of_grade = |grade| (0..rows.len()).filter(|&i| rows[i][2] == grade).collect();
    let classes = [of_grade("benign"), of_grade("malignant")];

    let plan = FoldPlan { procedure: Procedure::Glas, ..FoldPlan::default() };
    let fold = &folds(&classes, &plan)[0][0];
    let names = |indices: &[usize]| {
        indices.iter().map(|&i| format!("{}.bmp", rows[i][0])).collect::<Vec<_>>()
    };
    let published = |split| first_column(&data.join(format!("folds/glas/{split}_s_0_f_0.csv")));
    assert_eq!(names(&fold.train), published("train"));
    assert_eq!(names(&fold.valid), published("valid"));
}

/// Reads the datasets and folds that come with the paper from `$PINPOINT_DATA`.
#[test]
#[ignore = "needs the research data: set PINPOINT_DATA to their folder"]
fn published_cub5_folds_are_regenerated_in_order() {
    let Some(data) = research_data() else { return };
    let lists = data.join("cub5/CUB_200_2011");
    let list = |name| {
        let text = fs::read_to_string(lists.join(name)).unwrap();
        let pairs = text.lines().map(|row| row.split_once(' ').unwrap());
        pairs.map(|(id, value)| (id.to_owned(), value.to_owned())).collect::<Vec<_>>()
    };
    let learns: BTreeMap<String, String> = list("train_test_split.txt").into_iter().collect();
    let mut images = list("images.txt");
    images.retain(|(id, _)| learns[id] == "1");
    // The order in which the paper's random choice picked them.
    let classes = ["019.", "171.", "108.", "099.", "178."]
        .map(|class| (0..images.len()).filter(|&i| images[i].1.starts_with(class)).collect());

    let fold = &folds(&classes, &FoldPlan::default())[0][0];
    let names = |indices: &[usize]| {
        indices.iter().map(|&i| format!("CUB_200_2011/images/{}", images[i].1)).collect::<Vec<_>>()
    };
    let published = |split| first_column(&data.join(format!("folds/cub5/{split}_s_0_f_0.csv")));
    assert_eq!(names(&fold.train), published("train"));
    assert_eq!(names(&fold.valid), published("valid"));
}

fn split(dataset: &Path, out: &Path) -> Command {
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.args(["data", "split"]).arg(dataset).arg("--out").arg(out);
    command
}

fn research_data() -> Option<PathBuf> {
    let data = env::var_os("PINPOINT_DATA").map(PathBuf::from);
    if data.is_none() {
        eprintln!("skipped: PINPOINT_DATA is not set");
    }
    data
}

fn first_column(list: &Path) -> Vec<String> {
    let text = fs::read_to_string(list).unwrap();
    text.lines().map(|row| row.split(',').next().unwrap().to_owned()).collect()
}

fn expected_fold(line: &str) -> (&str, usize, usize, Fold) {
    let [procedure, s, f, train, valid] = line.split(' ').collect::<Vec<_>>()[..] else {
        panic!("five fields: {line}")
    };
    let list = |text: &str| text.split(',').map(|index| index.parse().unwrap()).collect();
    let fold = Fold { train: list(train), valid: list(valid) };
    (procedure, s.parse().unwrap(), f.parse().unwrap(), fold)
}

/// Classes of these sizes that take turns: sample 0 of each, sample 1 of each, …
fn take_turns(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut classes = vec![Vec::new(); sizes.len()];
    let turns = (0..50).flat_map(|turn| (0..sizes.len()).map(move |class| (turn, class)));
    for (index, (_, class)) in turns.filter(|&(turn, class)| turn < sizes[class]).enumerate() {
        classes[class].push(index);
    }
    classes
}

/// A dataset without files: `sizes[i]` training samples of class `c<i>`, classes taking turns.
fn dataset(sizes: &[usize]) -> Dataset {
    let root = PathBuf::from("root");
    let mut labels: Vec<(usize, usize)> = Vec::new();
    for (label, class) in take_turns(sizes).iter().enumerate() {
        labels.extend(class.iter().map(|&index| (index, label)));
    }
    labels.sort_unstable();
    let sample = |&(index, label): &(usize, usize)| {
        let id = format!("{index}.png");
        Sample { image: root.join(&id), id, label, truth: Truth::default() }
    };
    Dataset {
        layout: Layout::Folders,
        classes: (0..sizes.len()).map(|label| format!("c{label}")).collect(),
        mask_rule: MaskRule::NonZero,
        train: labels.iter().map(sample).collect(),
        valid: Vec::new(),
        test: Vec::new(),
        notes: Vec::new(),
        problems: Vec::new(),
        root,
    }
}

fn class_sizes(samples: &[Sample]) -> BTreeMap<usize, usize> {
    let mut sizes = BTreeMap::new();
    for sample in samples {
        *sizes.entry(sample.label).or_default() += 1;
    }
    sizes
}
