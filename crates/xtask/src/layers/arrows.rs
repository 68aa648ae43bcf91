//! Arrows between crates, read from the `Cargo.toml` files.

use std::collections::BTreeSet;

use super::table::{Knows, Never, Room};
use crate::workspace::{Kind, Package, Workspace};

/// The rules that arrows obey; a value, so that tests can bring a small house of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) rooms: &'static [Room],
    pub(crate) never: &'static [Never],
}

impl Plan {
    fn room(&self, name: &str) -> Option<&'static Room> {
        self.rooms.iter().find(|room| room.name == name)
    }
}

/// Every broken rule, as a sentence; empty when the house stands.
pub(crate) fn check(plan: Plan, workspace: &Workspace) -> Vec<String> {
    let ours: BTreeSet<&str> =
        workspace.packages.iter().map(|p| p.name.as_str()).chain(plan.rooms.iter().map(|r| r.name)).collect();
    let mut broken = Vec::new();
    for package in &workspace.packages {
        let Some(room) = plan.room(&package.name) else {
            broken.push(format!(
                "{}: this crate is not in the table; give it a floor in crates/xtask/src/layers/table.rs \
                 and in ARCHITECTURE.md",
                package.name
            ));
            continue;
        };
        broken.extend(wrong_folder(package));
        for dependency in &package.dependencies {
            let to = dependency.name.as_str();
            if dependency.kind != Kind::Dev {
                broken.extend(forbidden(plan, package, to));
            }
            if ours.contains(to) {
                broken.extend(match dependency.kind {
                    Kind::Normal | Kind::Build => wrong_arrow(plan, room, to),
                    Kind::Dev => wrong_test_arrow(plan, room, to),
                });
            }
        }
    }
    broken.sort();
    broken.dedup();
    broken
}

/// How many arrows between crates of ours there are, tests aside.
pub(crate) fn count(plan: Plan, workspace: &Workspace) -> usize {
    let arrows = workspace.packages.iter().flat_map(|p| &p.dependencies);
    arrows.filter(|d| d.kind != Kind::Dev && plan.room(&d.name).is_some()).count()
}

fn wrong_folder(package: &Package) -> Option<String> {
    let folder = package.manifest_path.parent()?.file_name()?.to_string_lossy();
    (folder != package.name.as_str())
        .then(|| format!("{}: its folder is named `{folder}`; a folder has the name of its crate", package.name))
}

fn forbidden(plan: Plan, package: &Package, to: &str) -> Option<String> {
    let from = package.name.as_str();
    let rule = plan.never.iter().find(|n| (n.who.is_empty() || n.who.contains(&from)) && n.what.contains(&to))?;
    Some(format!("{from} -> {to}: {}", rule.why))
}

fn wrong_arrow(plan: Plan, from: &Room, to: &str) -> Option<String> {
    if to == "testkit" || to == "xtask" {
        return Some(format!("{} -> {to}: test tools and automation are no part of the product", from.name));
    }
    let Some(target) = plan.room(to) else {
        return Some(format!("{} -> {to}: `{to}` is not in the table", from.name));
    };
    let known = match from.knows {
        Knows::Only(list) => list.contains(&to),
        Knows::Below => true,
    };
    if !known {
        let Knows::Only(list) = from.knows else { return None };
        let may = if list.is_empty() { "nothing of ours".to_owned() } else { list.join(", ") };
        return Some(format!(
            "{} -> {to}: {} knows {may}; define the trait where it is needed and implement it on a higher floor",
            from.name, from.name
        ));
    }
    match (from.floor, target.floor) {
        (Some(here), Some(there)) if there < here => None,
        (Some(here), Some(there)) => Some(format!(
            "{} -> {to}: from floor {here} to floor {there}; dependencies point down, at least one floor",
            from.name
        )),
        _ => None,
    }
}

/// A test may use testkit and any crate that is not above its own.
fn wrong_test_arrow(plan: Plan, from: &Room, to: &str) -> Option<String> {
    if to == "testkit" {
        return None;
    }
    let there = plan.room(to).and_then(|room| room.floor);
    match (from.floor, there) {
        (Some(here), Some(there)) if there <= here => None,
        (None, _) => None,
        (Some(here), Some(there)) => Some(format!(
            "{} -> {to} (tests): from floor {here} to floor {there}; move the test to the higher crate",
            from.name
        )),
        (Some(_), None) => Some(format!("{} -> {to} (tests): `{to}` stands outside the house", from.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{NEVER, ROOMS};
    use super::*;

    const REAL: Plan = Plan { rooms: ROOMS, never: NEVER };

    /// A workspace of crates, each with the lines of its dependency tables: `name`, `dev:name`, `build:name`.
    fn house(crates: &[(&str, &[&str])]) -> Workspace {
        let packages = crates.iter().map(|(name, lines)| {
            let dependencies = lines.iter().map(|line| match line.split_once(':') {
                Some((kind, name)) => serde_json::json!({"name": name, "kind": kind}),
                None => serde_json::json!({"name": line, "kind": null}),
            });
            serde_json::json!({
                "name": name,
                "manifest_path": format!("/house/crates/{name}/Cargo.toml"),
                "dependencies": dependencies.collect::<Vec<_>>(),
            })
        });
        serde_json::from_value(serde_json::json!({
            "packages": packages.collect::<Vec<_>>(), "workspace_root": "/house", "target_directory": "/house/target",
        }))
        .unwrap()
    }

    #[track_caller]
    fn fine(crates: &[(&str, &[&str])]) {
        assert_eq!(check(REAL, &house(crates)), Vec::<String>::new());
    }

    #[track_caller]
    fn broken(crates: &[(&str, &[&str])], sentence: &str) {
        let found = check(REAL, &house(crates));
        assert!(found.len() == 1 && found[0].contains(sentence), "expected one `{sentence}`, found {found:#?}");
    }

    #[test]
    fn arrows_down_are_fine() {
        fine(&[
            ("gjc-entry", &["serde"]),
            ("gjc-log", &["gjc-entry", "gjc-fp", "tokio", "libc"]),
            ("gjc-tools", &["gjc-context", "gjc-process", "gjc-bank"]),
            ("gjc", &["gjc-agent", "gjc-tui", "gjc-entry"]),
        ]);
    }

    #[test]
    fn an_arrow_up_is_broken() {
        broken(&[("gjc-tools", &["gjc-agent"])], "from floor 4 to floor 5");
        broken(&[("gjc-agent", &["gjc"])], "from floor 5 to floor 7");
    }

    #[test]
    fn an_arrow_to_the_same_floor_is_broken() {
        broken(&[("gjc-serve", &["gjc-tui"])], "from floor 6 to floor 6");
        broken(&[("gjc-serve", &["build:gjc-tui"])], "from floor 6 to floor 6");
    }

    #[test]
    fn the_lower_floors_know_only_what_the_picture_says() {
        broken(&[("gjc-process", &["gjc-entry"])], "gjc-process knows nothing of ours");
        broken(&[("gjc-context", &["gjc-flow"])], "gjc-context knows gjc-entry;");
        broken(&[("gjc-llm", &["gjc-log"])], "gjc-llm knows gjc-entry, gjc-context;");
        broken(&[("testkit", &["gjc-context"])], "testkit knows");
        broken(&[("xtask", &["gjc-entry"])], "xtask knows nothing of ours");
    }

    #[test]
    fn the_terminal_does_not_know_the_agent() {
        let found = check(REAL, &house(&[("gjc-tui", &["gjc-agent"])]));
        assert!(found.iter().any(|s| s.contains("gjc-tui must not know gjc-agent")), "{found:#?}");
    }

    #[test]
    fn pure_crates_take_no_runtime_and_no_system_calls() {
        for what in ["tokio", "reqwest", "rustix", "libc"] {
            broken(&[("gjc-context", &[what])], "are pure");
            broken(&[("gjc-flow", &[&format!("build:{what}")])], "are pure");
        }
        fine(&[("gjc-context", &["dev:tokio"])]);
    }

    #[test]
    fn nobody_maps_files() {
        broken(&[("gjc-log", &["memmap2"])], "no file is mapped");
    }

    #[test]
    fn tests_may_use_testkit_and_crates_that_are_not_above() {
        fine(&[("gjc-entry", &["dev:testkit"]), ("gjc-store", &["dev:gjc-context", "dev:gjc-log"])]);
        broken(&[("gjc-store", &["dev:gjc-agent"])], "move the test to the higher crate");
        broken(&[("gjc-store", &["dev:xtask"])], "stands outside the house");
    }

    #[test]
    fn test_tools_are_no_part_of_the_product() {
        broken(&[("gjc", &["testkit"])], "no part of the product");
        broken(&[("gjc", &["xtask"])], "no part of the product");
    }

    #[test]
    fn every_crate_is_in_the_table() {
        broken(&[("gjc-attic", &["serde"])], "gjc-attic: this crate is not in the table");
        let found = check(REAL, &house(&[("gjc-attic", &[]), ("gjc", &["gjc-attic"])]));
        assert!(found.iter().any(|s| s.contains("gjc -> gjc-attic: `gjc-attic` is not in the table")), "{found:#?}");
    }

    #[test]
    fn a_folder_has_the_name_of_its_crate() {
        let mut house = house(&[("gjc-log", &[])]);
        house.packages[0].manifest_path = "/house/crates/journal/Cargo.toml".into();
        assert_eq!(check(REAL, &house).len(), 1);
    }

    #[test]
    fn the_table_itself_points_down_and_names_each_room_once() {
        for room in ROOMS {
            assert_eq!(ROOMS.iter().filter(|r| r.name == room.name).count(), 1, "{}", room.name);
            let Knows::Only(list) = room.knows else { continue };
            for to in list {
                assert_eq!(wrong_arrow(REAL, room, to), None);
            }
        }
    }
}
