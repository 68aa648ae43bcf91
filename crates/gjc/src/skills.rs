//! Skills: what a person and a project have written down for tasks of a kind, to be read when one comes.
//!
//! `skills/NAME/SKILL.md` of the agent folder, and `.gjc/skills/NAME/SKILL.md` at the root of the project. The model sees of each
//! its name, its description and its path, and reads the file with `read`. Of a project only those are shown whose `SKILL.md` a
//! person has let in byte for byte. What a skill says of itself stays on one line, whatever it says.

use crate::{instructions, unseen};
use gjc_settings::{ContentHash, Trust, front_matter, project_root};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// The longest name and the longest description, in characters.
const NAME: usize = 64;
const DESCRIPTION: usize = 1024;
/// The most skills of a folder, and the most entries of it that are looked at.
const MOST: usize = 100;
const LOOKED_AT: usize = 1000;

/// What was found.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Skills {
    /// The project's, then the person's, each by their names.
    skills: Vec<Skill>,
    /// What a person should know of them, as sentences.
    pub(crate) notices: Vec<String>,
    /// Whether any skill of the project was there to be trusted.
    pub(crate) of_project: bool,
}

#[derive(Debug, PartialEq)]
struct Skill {
    name: String,
    description: String,
    path: PathBuf,
    hash: ContentHash,
    /// The first character that nobody sees, and its line.
    hidden: Option<(usize, char)>,
}

impl Skills {
    /// Reads the skills for a working folder (a real path). `trust_project`: the person trusts what is read of the project now.
    pub(crate) fn read(agent: &Path, cwd: &Path, trust_project: bool) -> Self {
        let (mut found, trust, root) = (Self::default(), Trust::of_skills(agent), project_root(cwd));
        let (own, theirs) = (agent.join("skills"), root.join(".gjc/skills"));
        // In a home folder without a repository both may be one.
        let same = fs::canonicalize(&own).ok().is_some_and(|own| fs::canonicalize(&theirs).is_ok_and(|it| it == own));
        if !same {
            let of_project = found.look(&theirs, Some(&root));
            found.of_project = !of_project.is_empty();
            if trust_project {
                found.grant(&of_project, &trust);
            }
            let (trusted, asked): (Vec<Skill>, Vec<Skill>) =
                of_project.into_iter().partition(|skill| trust.holds(&skill.path, &skill.hash));
            if !asked.is_empty() {
                found.notices.push(format!(
                    "skills in {} ({}) came with the project and are not shown to the model; --trust-project trusts them as they are",
                    theirs.display(),
                    asked.len()
                ));
            }
            found.skills = trusted;
        }
        let of_person = found.look(&own, None);
        for skill in of_person {
            if found.skills.iter().any(|other| other.name == skill.name) {
                found.notices.push(format!("the project's skill {} stands in the place of yours", skill.name));
            } else {
                found.skills.push(skill);
            }
        }
        found
    }

    /// How many a model is shown.
    pub(crate) fn count(&self) -> usize {
        self.skills.len()
    }

    /// The text for the system prompt; empty where there is none, or no tool to read one with.
    pub(crate) fn section(&self, tools: &[&str]) -> String {
        if self.skills.is_empty() || !tools.contains(&"read") {
            return String::new();
        }
        let mut section = String::from(
            "\n\n# Skills\n\nWhat the person has for tasks of a kind. When a task fits a description, read the file of that skill \
             with `read` before you begin; paths in it begin at its folder.\n",
        );
        for Skill { name, description, path, .. } in &self.skills {
            section.push_str(&format!("\n- {name} ({}): {description}", path.display()));
        }
        section
    }

    fn grant(&mut self, skills: &[Skill], trust: &Trust) {
        for skill in skills {
            if let Some((line, hidden)) = skill.hidden {
                self.notices.push(format!(
                    "the skill {} ({}) is not trusted: line {line} holds {}, which nobody sees; remove it and trust it again",
                    skill.name,
                    skill.path.display(),
                    unseen::name(hidden)
                ));
                continue;
            }
            self.notices.push(match trust.grant(&skill.path, &skill.hash) {
                Ok(()) => format!("the skill {} ({}) is trusted as it is", skill.name, skill.path.display()),
                Err(error) => error.to_string(),
            });
        }
    }

    /// The skills of a folder, in the order of their folders' names; what is wrong with others is told. `within`: what none of
    /// them must lead out of.
    fn look(&mut self, folder: &Path, within: Option<&Path>) -> Vec<Skill> {
        let mut names: Vec<PathBuf> =
            fs::read_dir(folder).into_iter().flatten().flatten().take(LOOKED_AT).map(|entry| entry.path()).collect();
        names.sort();
        let (mut skills, mut seen): (Vec<Skill>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
        for path in names.into_iter().map(|dir| dir.join("SKILL.md")) {
            let skill = match skill(&path, within) {
                Ok(None) => continue,
                Ok(Some(skill)) if seen.contains(&skill.name) => Err("another one has its name".to_owned()),
                Ok(Some(_)) if skills.len() == MOST => Err(format!("{MOST} skills of a folder are shown at most")),
                Ok(Some(skill)) => Ok(skill),
                Err(why) => Err(why),
            };
            match skill {
                Ok(skill) => {
                    seen.insert(skill.name.clone());
                    skills.push(skill);
                }
                Err(why) => self.notices.push(format!("the skill in {} is left out: {why}", path.display())),
            }
        }
        skills
    }
}

/// A skill; `None` where there is no such file.
fn skill(path: &Path, within: Option<&Path>) -> Result<Option<Skill>, String> {
    let Some((text, cut)) = instructions::read(path, within)? else { return Ok(None) };
    if cut {
        return Err("its SKILL.md is longer than 64 KiB; longer texts belong in files beside it".into());
    }
    if path.to_str().is_none_or(|path| path.contains(is_break)) {
        return Err("its path holds a line break or another control character".into());
    }
    let (front, _) =
        front_matter(&text).ok_or("its SKILL.md does not begin with front matter between two lines of ---")?;
    // One name in either form of its letters is one name.
    let name: String = front.get("name").map_or("", |name| name.trim()).nfc().collect();
    if name.is_empty() {
        return Err("it has no name".into());
    }
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.chars().count() > NAME || !name.chars().all(is_of_name) {
        return Err(format!("its name must have 1 to {NAME} letters, digits, \"-\", \"_\" or \".\""));
    }
    let description = on_one_line(front.get("description").map_or("", String::as_str));
    if description.is_empty() {
        return Err("it has no description".into());
    }
    if description.chars().count() > DESCRIPTION {
        return Err(format!("its description is longer than {DESCRIPTION} characters"));
    }
    let (hash, hidden) = (ContentHash::of(text.as_bytes()), unseen::first(&text));
    Ok(Some(Skill { name, description, path: path.into(), hash, hidden }))
}

/// Words with one blank between them, and nothing that a reader would take for the end of a line or obey.
fn on_one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if is_break(c) { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a character may end a line, changes the direction of writing, or is another control character.
fn is_break(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
