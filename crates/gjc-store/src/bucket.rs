//! Names of buckets.

use sha2::{Digest, Sha256};
use std::path::Path;

/// The longest name that file systems take, in bytes.
const LONGEST: usize = 255;

/// The bucket of a working folder: its real path without the first separator, each `/`, `\` and `:` as `-`, between `--`.
/// All other characters stay, 한글 too. Not injective: `/a/b-c` and `/a-b/c` share a bucket.
///
/// What would be too long for a name (255 bytes) is named by its digest, as newer programs of the family do:
/// `v2-` and 52 characters. The headers in it say which folder it is.
#[must_use]
pub fn bucket_name(real_cwd: &Path) -> String {
    let text = real_cwd.to_string_lossy();
    let rest = text.strip_prefix(['/', '\\']).unwrap_or(&text);
    let name = format!("--{}--", rest.replace(['/', '\\', ':'], "-"));
    if name.len() <= LONGEST { name } else { digest_name(real_cwd) }
}

fn digest_name(real_cwd: &Path) -> String {
    let mut hash = Sha256::new_with_prefix("gjc-managed-session-scope\0identity-v1\0posix\0");
    hash.update(real_cwd.as_os_str().as_encoded_bytes());
    format!("v2-{}", base32(&hash.finalize()))
}

/// RFC 4648, in lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    let digit = |group: usize| {
        let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
        let value = (group * 5..group * 5 + 5).fold(0, |value, at| value << 1 | bit(at));
        char::from(if value < 26 { b'a' + value } else { b'2' + value - 26 })
    };
    (0..(bytes.len() * 8).div_ceil(5)).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_name_would_be_too_long_has_a_bucket_all_the_same() {
        assert_eq!(base32(b"foobar"), "mzxw6ytboi");
        let path = |len: usize| format!("/{}", "a".repeat(len));
        let longest = bucket_name(Path::new(&path(251)));
        assert_eq!((longest.len(), &longest[..3]), (255, "--a"));
        let deep = format!("/{}", ["한글한글한글한글한글한"; 10].join("/"));
        // printf 'gjc-managed-session-scope\0identity-v1\0posix\0/aaa…' | sha256sum, in base 32.
        for (cwd, bucket) in [
            (path(252), "v2-jvkwvfvppjyutuovcwegec6jluz63tsjalt4kt3ylmyqbczeq6oq"),
            (deep, "v2-plyfnf7tjmqvntjlxn3rxdqxg5v624o6fljh7c4ssfpa4ksf3v3a"),
        ] {
            assert_eq!(bucket_name(Path::new(&cwd)), bucket);
        }
    }

    #[test]
    fn buckets_are_the_family_s() {
        for (cwd, bucket) in [
            ("/home/dev/proj", "--home-dev-proj--"),
            ("/작업/한글 폴더", "--작업-한글 폴더--"),
            ("/", "----"),
            ("C:\\work", "--C--work--"),
            ("/a/b-c", "--a-b-c--"),
            ("/a-b/c", "--a-b-c--"),
        ] {
            assert_eq!(bucket_name(Path::new(cwd)), bucket);
        }
    }
}
