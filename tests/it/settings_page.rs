//! `docs/settings.md` is made from the settings themselves: meanings are the doc comments of
//! `src/config`, defaults are computed, and ranges are what the checks answer to impossible values.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use pinpoint::{Error, config::Config, method};

const REMEDY: &str =
    "make it again: `PINPOINT_WRITE_DOCS=1 cargo test --release --test it settings_page`";

/// A struct of settings, or an enumeration of what one may be.
#[derive(Debug, Default)]
struct Item {
    doc: String,
    /// How serde spells the variants.
    spelling: Option<String>,
    fields: Vec<Field>,
    variants: Vec<Variant>,
}

#[derive(Debug)]
struct Field {
    name: String,
    kind: String,
    doc: String,
}

#[derive(Debug)]
struct Variant {
    name: String,
    doc: String,
    has_value: bool,
}

#[test]
fn the_page_of_settings_is_what_the_code_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("docs/settings.md");
    let page = Page::new(root).render();
    if env::var_os("PINPOINT_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "`docs/settings.md` is out of date; {REMEDY}");
}

#[test]
fn every_setting_of_a_run_is_on_the_page() {
    let page = Page::new(Path::new(env!("CARGO_MANIFEST_DIR"))).render();
    let table = toml::Table::try_from(Config::default()).unwrap();
    for key in keys(&table, "") {
        assert!(page.contains(&format!("| `{key}` |")), "`{key}` is missing");
    }
}

struct Page {
    items: BTreeMap<String, Item>,
    published: toml::Table,
    probe: toml::Table,
}

impl Page {
    fn new(root: &Path) -> Self {
        let mut sources: Vec<PathBuf> = fs::read_dir(root.join("src/config"))
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        sources.push(root.join("src/data/mask/mod.rs"));
        let items =
            sources.iter().flat_map(|path| items(&fs::read_to_string(path).unwrap())).collect();
        let table = |config: &Config| toml::Table::try_from(config).unwrap();
        Self {
            items,
            published: table(&Config::default()),
            probe: table(&method::published("probe").unwrap()),
        }
    }

    fn render(&self) -> String {
        let mut page = String::from(
            "# Settings\n\n\
             Every setting, as `--set KEY=VALUE` and a TOML file (`--config`) take it.\n\
             The default is that of the published method; where the probe has another, it follows \
             in brackets.\n\
             Baselines change more of them to what they were published with: `config.toml` of a run \
             says what ran.\n\n\
             This page is made from the code and checked by a test.\n",
        );
        let config = &self.items["Config"];
        let (plain, sections): (Vec<_>, Vec<_>) = config.fields.iter().partition(|field| {
            !self.items.contains_key(&field.kind) || self.items[&field.kind].fields.is_empty()
        });
        page.push_str("\n## The experiment\n\n");
        self.table(plain, "", &mut page);
        for section in sections {
            let item = &self.items[&section.kind];
            write!(page, "\n## `[{}]`\n\n{}\n\n", section.name, item.doc).unwrap();
            self.table(item.fields.iter().collect(), &format!("{}.", section.name), &mut page);
        }
        page
    }

    fn table(&self, fields: Vec<&Field>, prefix: &str, page: &mut String) {
        page.push_str("| setting | meaning | default | range |\n|---|---|---|---|\n");
        self.rows(fields, prefix, page);
    }

    fn rows(&self, fields: Vec<&Field>, prefix: &str, page: &mut String) {
        for Field { name, kind, doc } in fields {
            let key = format!("{prefix}{name}");
            let inner = kind.trim_start_matches("Option<").trim_end_matches('>');
            match self.items.get(inner) {
                Some(item) if !item.fields.is_empty() => {
                    if kind.starts_with("Option<") {
                        writeln!(
                            page,
                            "| `{key}` | {doc} | none | the settings below, all of them |"
                        )
                        .unwrap();
                    }
                    self.rows(item.fields.iter().collect(), &format!("{key}."), page);
                }
                item => {
                    let default = self.default(&key);
                    let range = self.range(&key, item);
                    writeln!(page, "| `{key}` | {doc} | {default} | {range} |").unwrap();
                }
            }
        }
    }

    fn default(&self, key: &str) -> String {
        let shown = |table| match value(table, key) {
            Some(value) => format!("`{value}`"),
            None => "none".to_owned(),
        };
        let (published, probe) = (shown(&self.published), shown(&self.probe));
        if published == probe { published } else { format!("{published} ({probe})") }
    }

    /// What the setting may be: its names, or what is answered to values that it may not be.
    fn range(&self, key: &str, item: Option<&Item>) -> String {
        if key == "method" {
            let names: Vec<String> = method::NAMES.iter().map(|name| format!("`{name}`")).collect();
            return names.join(", ");
        }
        if let Some(Item { variants, spelling, .. }) = item.filter(|item| item.spelling.is_some()) {
            let spelled = |variant: &Variant| {
                let name = spell(&variant.name, spelling.as_deref());
                match variant.doc.trim_end_matches('.') {
                    "" => format!("`{name}`"),
                    doc => format!("`{name}`: {doc}"),
                }
            };
            return variants
                .iter()
                .filter(|v| !v.has_value)
                .map(spelled)
                .collect::<Vec<_>>()
                .join("<br>");
        }
        let mut reasons: Vec<String> = Vec::new();
        let mut valid = self.published.clone();
        if key.starts_with("augment.affine") {
            // Absent by default, and all of it is needed.
            let affine = "degrees = 0.0\nshear = 0.0\nscale = [1.0, 1.0]".parse::<toml::Table>();
            let augment = valid["augment"].as_table_mut().unwrap();
            augment.insert("affine".to_owned(), affine.unwrap().into());
        }
        for attempt in impossible(value(&valid, key)) {
            let mut table = valid.clone();
            let (last, path) = key.rsplit_once('.').map_or((key, ""), |(path, last)| (last, path));
            let section =
                path.split('.').filter(|part| !part.is_empty()).fold(&mut table, |table, part| {
                    table.entry(part).or_insert(toml::Table::new().into()).as_table_mut().unwrap()
                });
            section.insert(last.to_owned(), attempt);
            let Ok(config) = Config::from_table(table) else { continue };
            if let Err(Error::Setting(problems)) = config.check() {
                let own = problems
                    .iter()
                    .filter_map(|problem| problem.strip_prefix(&format!("`{key}` ")));
                reasons.extend(own.map(str::to_owned));
            }
        }
        reasons.sort();
        reasons.dedup();
        match (reasons.is_empty(), value(&self.published, key)) {
            (false, _) => reasons.join("; "),
            (true, Some(toml::Value::Boolean(_))) => "`true`, `false`".to_owned(),
            (true, Some(toml::Value::Integer(_))) => "a whole number from 0".to_owned(),
            _ => String::new(),
        }
    }
}

/// Values that a setting with such a default would hardly allow.
fn impossible(default: Option<&toml::Value>) -> Vec<toml::Value> {
    let numbers = || [-1.0, 0.0, 1.5, 1e9, f64::NAN].map(toml::Value::from).to_vec();
    match default {
        Some(toml::Value::Float(_)) | None => numbers(),
        Some(toml::Value::Integer(_)) => {
            [0, 1_000_000_000].map(toml::Value::from).into_iter().chain(numbers()).collect()
        }
        Some(toml::Value::Array(_)) => {
            let arrays = [vec![], vec![-1.0_f64], vec![2.0, 1.0]];
            arrays.map(toml::Value::from).to_vec()
        }
        _ => Vec::new(),
    }
}

fn value<'a>(table: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    let mut parts = key.split('.');
    let first = table.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

fn keys(table: &toml::Table, prefix: &str) -> Vec<String> {
    let of = |(name, value): (&String, &toml::Value)| match value {
        toml::Value::Table(table) => keys(table, &format!("{prefix}{name}.")),
        _ => vec![format!("{prefix}{name}")],
    };
    table.iter().flat_map(of).collect()
}

/// The public structs and enumerations of a source file, by name.
fn items(source: &str) -> Vec<(String, Item)> {
    let mut found = Vec::new();
    let (mut doc, mut spelling) = (String::new(), None);
    let mut open: Option<(String, Item)> = None;
    for line in source.lines() {
        let trimmed = line.trim();
        if let Some(text) = trimmed.strip_prefix("///") {
            let text = without_link(text.trim());
            doc.push_str(if doc.is_empty() || text.is_empty() { "" } else { " " });
            doc.push_str(&text);
        } else if let Some(rest) = trimmed.strip_prefix("#[serde(rename_all = \"") {
            spelling = rest.split('"').next().map(str::to_owned);
        } else if trimmed.starts_with("#[") {
        } else if let Some(name) = opened(trimmed) {
            let item = Item {
                doc: std::mem::take(&mut doc),
                spelling: spelling.take(),
                ..Item::default()
            };
            open = Some((name, item));
        } else if trimmed == "}" {
            found.extend(open.take());
        } else if let Some((_, item)) = &mut open {
            let doc = std::mem::take(&mut doc);
            if let Some((name, kind)) =
                trimmed.strip_prefix("pub ").and_then(|f| f.split_once(": "))
            {
                let kind = kind.split(" = ").next().unwrap().trim_end_matches(',').to_owned();
                item.fields.push(Field { name: name.to_owned(), kind, doc });
            } else if trimmed.starts_with(char::is_uppercase) {
                let name: String = trimmed.chars().take_while(|c| c.is_alphanumeric()).collect();
                let has_value = trimmed[name.len()..].starts_with(['(', '{', ' ']);
                item.variants.push(Variant { name, doc, has_value });
            }
        } else {
            (doc, spelling) = (String::new(), None);
        }
    }
    found
}

/// Text in which a link into the code is only its words.
fn without_link(text: &str) -> String {
    let (Some(open), Some(middle)) = (text.find('['), text.find("](crate::")) else {
        return text.to_owned();
    };
    let end = text[middle..].find(')').map_or(text.len(), |end| middle + end + 1);
    format!("{}{}{}", &text[..open], &text[open + 1..middle], &text[end..])
}

/// The name of a struct or an enumeration that begins on this line.
fn opened(line: &str) -> Option<String> {
    let rest = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "))?;
    rest.strip_suffix(" {").map(str::to_owned)
}

/// A variant as serde spells it.
fn spell(name: &str, spelling: Option<&str>) -> String {
    let kebab = spelling == Some("kebab-case");
    let mut spelled = String::new();
    for (at, letter) in name.chars().enumerate() {
        if kebab && at > 0 && letter.is_uppercase() {
            spelled.push('-');
        }
        spelled.extend(letter.to_lowercase());
    }
    spelled
}
