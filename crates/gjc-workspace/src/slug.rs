//! Names of folders and sessions, made of names of branches.

use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

/// How much of a name is kept, in bytes: with the hash and what programs add it stays far below the 255 of a file's name.
const LONGEST: usize = 120;

/// A name of a folder for any name: letters and digits of every script in lower case, all else `-`, and eight hexadecimal digits of
/// the whole name's hash. Names that differ in what is left out have different folders; the normal forms of one name have the same.
#[must_use]
pub fn slug(name: &str) -> String {
    let name: String = name.nfc().collect();
    let readable = readable(&name);
    let hash = short_hash(name.as_bytes());
    if readable.is_empty() { hash } else { format!("{readable}-{hash}") }
}

/// The part of a slug that a person reads; may be empty.
pub(crate) fn readable(name: &str) -> String {
    let mut slug = String::new();
    // Lowering may take a letter apart.
    for c in name.nfc().collect::<String>().to_lowercase().nfc() {
        let c = if c.is_alphanumeric() { c } else { '-' };
        if c == '-' && (slug.is_empty() || slug.ends_with('-')) {
            continue;
        }
        if slug.len() + c.len_utf8() > LONGEST {
            break;
        }
        slug.push(c);
    }
    slug.trim_end_matches('-').to_owned()
}

/// Eight hexadecimal digits of a hash.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_a_folder_that_tells_it() {
        // printf 'feature/login' | sha256sum
        assert_eq!(slug("feature/login"), "feature-login-df7c7aeb");
        let readable = |name: &str| super::readable(name);
        assert_eq!(readable("기능/로그인"), "기능-로그인");
        assert_eq!(readable("Fix: the  BUG!"), "fix-the-bug");
        assert_eq!(readable("修正_バグ"), "修正-バグ");
    }

    #[test]
    fn names_that_differ_have_other_folders_and_normal_forms_of_one_have_the_same() {
        let names = ["수정", "수-정", "수/정", "a/b", "a-b", "A/B", "...", "🦞", "🦀", "", "로그인", "로그아웃"];
        let mut slugs: Vec<String> = names.iter().map(|name| slug(name)).collect();
        assert!(slugs.iter().all(|slug| slug.len() >= 8));
        slugs.sort();
        slugs.dedup();
        assert_eq!(slugs.len(), names.len());
        let decomposed: String = "기능/로그인".nfd().collect();
        assert_ne!(decomposed, "기능/로그인");
        assert_eq!(slug(&decomposed), slug("기능/로그인"));
    }

    #[test]
    fn no_folder_is_too_long_for_its_name_nor_leads_elsewhere() {
        for name in ["가".repeat(300), "a/".repeat(300), "../../etc".into(), "İ".repeat(200), "\0\n/".into()] {
            let slug = slug(&name);
            assert!(slug.len() <= LONGEST + 9 && !slug.contains(['/', '\0', '\n', '.']), "{slug}");
        }
    }
}
