//! Where keys, tokens and private data of a person lie: one table. Nothing here opens any of it.

use crate::ToolCtx;
use crate::mounts::Mounts;
use gjc_entry::{Dirs, Vars};
use gjc_protocol::Refusal;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Where a secret lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPlace {
    /// Below the home folder.
    Home(&'static str),
    /// Where a variable says; several paths are separated by colons.
    Var(&'static str),
    /// Below the folder that a variable names.
    BelowVar(&'static str, &'static str),
    /// Anywhere.
    System(&'static str),
}

use SecretPlace::{BelowVar, Home, System, Var};

/// The table. Files or folders with all below them; whether they exist does not matter. gjc's own folder is added to it.
#[rustfmt::skip]
pub const SECRETS: &[SecretPlace] = &[
    // Keys of machines and people.
    Home(".ssh"), Home(".gnupg"), Var("GNUPGHOME"), Home(".pki"), Home(".age"), Home(".config/age"), Home(".config/sops"),
    Home(".password-store"), Var("PASSWORD_STORE_DIR"), Home(".local/share/keyrings"), Home(".local/share/kwalletd"),
    Home(".config/op"), Home(".config/1Password"), Home(".config/Bitwarden"), Home(".config/Bitwarden CLI"),
    Home(".config/keepassxc"), Home(".vault-token"), Home(".authinfo"), Home(".authinfo.gpg"), System("/run/secrets"),
    System("/run/user"),
    // Repositories and registries.
    Home(".netrc"), Home("_netrc"), Var("NETRC"), Home(".git-credentials"), Home(".config/git/credentials"),
    Home(".config/gh"), Var("GH_CONFIG_DIR"), Home(".config/hub"), Home(".config/glab-cli"), Home(".config/github-copilot"),
    Home(".cargo/credentials"), Home(".cargo/credentials.toml"), BelowVar("CARGO_HOME", "credentials"),
    BelowVar("CARGO_HOME", "credentials.toml"), Home(".npmrc"), Var("NPM_CONFIG_USERCONFIG"), Var("npm_config_userconfig"),
    Home(".yarnrc.yml"), Home(".pypirc"), Home(".gem/credentials"), Home(".m2/settings.xml"),
    Home(".m2/settings-security.xml"), Home(".gradle/gradle.properties"), Home(".composer/auth.json"),
    Home(".config/composer/auth.json"), Home(".nuget/NuGet"),
    // Clouds and clusters.
    Home(".aws"), Var("AWS_SHARED_CREDENTIALS_FILE"), Var("AWS_CONFIG_FILE"), Home(".azure"), Var("AZURE_CONFIG_DIR"),
    Home(".config/gcloud"), Var("CLOUDSDK_CONFIG"), Var("GOOGLE_APPLICATION_CREDENTIALS"), Home(".boto"), Home(".s3cfg"),
    Home(".oci"), Home(".docker"), Var("DOCKER_CONFIG"), Home(".config/containers"), Home(".kube"), Var("KUBECONFIG"),
    Home(".config/helm"), Home(".terraform.d"), Home(".terraformrc"), Home(".pulumi"), Home(".config/doctl"),
    Home(".config/hcloud"), Home(".config/rclone"), Home(".fly"), Home(".config/heroku"), Home(".databrickscfg"),
    // Databases and mail.
    Home(".pgpass"), Var("PGPASSFILE"), Home(".my.cnf"), Home(".mylogin.cnf"), Home(".msmtprc"), Home(".fetchmailrc"),
    Home(".mutt"), Home(".config/mutt"), Home(".config/neomutt"), Home(".thunderbird"),
    // Browsers: cookies are keys.
    Home(".mozilla"), Home(".config/mozilla"), Home(".librewolf"), Home(".zen"), Home(".config/google-chrome"),
    Home(".config/google-chrome-beta"), Home(".config/google-chrome-unstable"), Home(".config/chromium"),
    Home(".config/BraveSoftware"), Home(".config/microsoft-edge"), Home(".config/vivaldi"), Home(".config/opera"),
    Home(".local/share/epiphany"), Home(".cache/mozilla"), Home(".cache/google-chrome"), Home(".cache/chromium"),
    Home(".var/app"), Home("snap/firefox"), Home("snap/chromium"), Home("snap/brave"),
    // What a person has typed.
    Home(".bash_history"), Home(".zsh_history"), Home(".local/share/fish/fish_history"), Home(".python_history"),
    Home(".node_repl_history"), Home(".psql_history"), Home(".mysql_history"), Home(".sqlite_history"), Var("HISTFILE"),
    // Agents of this family and others: keys, sessions.
    Home(".gjc"), Home(".pi"), Home(".omp"), Home(".claude"), Home(".claude.json"), Home(".codex"), Home(".gemini"),
    Home(".config/opencode"), Home(".local/share/opencode"), Home(".aider"), Home(".config/anthropic"),
    Home(".cache/huggingface/token"), Home(".huggingface"),
];

/// The places of this person: the table, gjc's own folder, where links among them lead, and every other name that a second
/// mount gives them.
pub(super) fn places(dirs: &Dirs, named: &[PathBuf]) -> Vec<PathBuf> {
    let home = SECRETS.iter().filter_map(|place| match place {
        Home(below) => Some(dirs.home.join(below)),
        System(path) => Some(path.into()),
        Var(_) | BelowVar(..) => None,
    });
    let mut places: BTreeSet<PathBuf> = home.chain(named.iter().cloned()).chain([dirs.agent.clone()]).collect();
    for place in places.clone() {
        places.extend(real(&place));
        places.extend(linked(&place, &dirs.home));
    }
    all_names(places)
}

/// The places of secrets as far as tools within gjc are kept out of them, as commands are by the sandbox.
pub(crate) struct Closed {
    places: Vec<PathBuf>,
    open: Vec<PathBuf>,
}

impl Closed {
    /// For a call. What a person works in is open to it, and so are their skills and what gjc keeps of whole outputs.
    pub(crate) fn to(ctx: &ToolCtx) -> Self {
        let dirs = Dirs { agent: ctx.own.clone(), home: ctx.home.clone(), temp: PathBuf::new() };
        let cwd = fs::canonicalize(&ctx.cwd).unwrap_or_else(|_| ctx.cwd.clone());
        let places = places(&dirs, &[]).into_iter().filter(|place| !cwd.starts_with(place)).collect();
        let open = [Some(ctx.own.join("skills")), ctx.artifacts.folder().map(Path::to_path_buf)];
        Self { places, open: open.into_iter().flatten().filter_map(|folder| real(&folder)).collect() }
    }

    /// Those that lie below a folder: in most there are none, and a walk through it need not ask for each file.
    pub(crate) fn below(self, root: &Path) -> Option<Self> {
        let places: Vec<_> = self.places.into_iter().filter(|place| place.starts_with(root)).collect();
        (!places.is_empty()).then_some(Self { places, ..self })
    }

    /// Whether a real path lies in one of them.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.places.iter().any(|place| path.starts_with(place)) && !self.open.iter().any(|open| path.starts_with(open))
    }

    /// What a model is told.
    pub(crate) fn refusal(given: &str) -> Refusal {
        Refusal::new("secret_place", format!("{given} is where keys and private data are kept, which no tool reads"))
            .hint("ask the person for what you need of it; they can work in that folder with --cwd")
    }
}

/// gjc's own folder, under all its names.
pub(super) fn own(dirs: &Dirs) -> Vec<PathBuf> {
    all_names([dirs.agent.clone()].into_iter().chain(real(&dirs.agent)).collect())
}

fn all_names(mut places: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mounts = Mounts::now();
    for place in places.clone() {
        places.extend(mounts.aliases(&place));
    }
    places.into_iter().collect()
}

/// The places that variables name. A relative one names nothing that could be found again.
pub(super) fn named(vars: &Vars) -> Vec<PathBuf> {
    let paths = |name: &str| -> Vec<PathBuf> {
        vars.get(name).into_iter().flat_map(|value| value.split(':')).map(PathBuf::from).collect()
    };
    SECRETS
        .iter()
        .flat_map(|place| match place {
            Var(name) => paths(name),
            BelowVar(name, below) => paths(name).into_iter().map(|path| path.join(below)).collect(),
            Home(_) | System(_) => Vec::new(),
        })
        .filter(|path| path.is_absolute() && path.components().all(|part| part != Component::ParentDir))
        .collect()
}

/// The place without links, also where its end does not exist.
fn real(place: &Path) -> Option<PathBuf> {
    let there = place.ancestors().find_map(|ancestor| Some((fs::canonicalize(ancestor).ok()?, ancestor)));
    let (there, ancestor) = there?;
    Some(there.join(place.strip_prefix(ancestor).ok()?))
}

/// Where links in a folder of secrets lead, as far as that is in the home folder: people keep such files together and link
/// to them.
fn linked(place: &Path, home: &Path) -> Vec<PathBuf> {
    let home = fs::canonicalize(home).unwrap_or_else(|_| home.into());
    let entries = fs::read_dir(place).into_iter().flatten().flatten().take(MOST_LINKS);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| fs::canonicalize(entry.path()).ok())
        .filter(|target| target.starts_with(&home) && *target != home)
        .collect()
}

/// Entries of a folder of secrets that are looked at.
const MOST_LINKS: usize = 4096;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn dirs(home: &Path) -> Dirs {
        Dirs { agent: home.join(".gjc/agent"), home: home.into(), temp: "/tmp".into() }
    }

    #[test]
    fn every_path_of_the_table_is_one_that_can_be_found() {
        for place in SECRETS {
            match place {
                Home(path) | BelowVar(_, path) => {
                    let path = Path::new(path);
                    assert!(path.components().all(|part| matches!(part, Component::Normal(_))), "{path:?}");
                }
                System(path) => assert!(Path::new(path).is_absolute()),
                Var(name) => assert!(!name.is_empty()),
            }
        }
        let unique: BTreeSet<_> = SECRETS.iter().map(|place| format!("{place:?}")).collect();
        assert_eq!(unique.len(), SECRETS.len(), "a place stands twice");
    }

    #[test]
    fn links_among_secrets_hide_what_they_lead_to() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("dotfiles/열쇠")).unwrap();
        fs::create_dir(home.join(".ssh")).unwrap();
        fs::write(home.join("dotfiles/netrc"), "").unwrap();
        fs::write(home.join("dotfiles/열쇠/id"), "").unwrap();
        std::os::unix::fs::symlink(home.join("dotfiles/netrc"), home.join(".netrc")).unwrap();
        std::os::unix::fs::symlink(home.join("dotfiles/열쇠/id"), home.join(".ssh/id")).unwrap();
        std::os::unix::fs::symlink("/usr", home.join(".ssh/usr")).unwrap();
        let places = places(&dirs(&home), &[]);
        for hidden in ["dotfiles/netrc", "dotfiles/열쇠/id", ".ssh", ".gjc/agent", ".config/gh"] {
            assert!(places.contains(&home.join(hidden)), "{hidden}");
        }
        assert!(!places.contains(&PathBuf::from("/usr")), "a link to the system hides no part of the system");
    }

    #[test]
    fn variables_move_places() {
        let vars = [("KUBECONFIG", "/a/k1:/b/k2"), ("GNUPGHOME", "rel"), ("CARGO_HOME", "/c"), ("NETRC", "/x/../y")];
        let vars = Vars::new(vars.map(|(name, value)| (name.to_string(), value.to_string())));
        let expected = ["/c/credentials", "/c/credentials.toml", "/a/k1", "/b/k2"].map(PathBuf::from);
        assert_eq!(named(&vars), expected);
    }
}
