//! Names of buckets and files.

use gjc_entry::{SessionId, Timestamp};
use std::path::Path;

/// The bucket of a working folder: its real path without the first separator, each `/`, `\` and `:` as `-`, between `--`.
/// All other characters stay, 한글 too. Not injective: `/a/b-c` and `/a-b/c` share a bucket.
#[must_use]
pub fn bucket_name(real_cwd: &Path) -> String {
    let text = real_cwd.to_string_lossy();
    let rest = text.strip_prefix(['/', '\\']).unwrap_or(&text);
    format!("--{}--", rest.replace(['/', '\\', ':'], "-"))
}

/// The name of a session's file.
#[must_use]
pub fn file_name(at: Timestamp, id: &SessionId) -> String {
    format!("{}_{id}.jsonl", at.file_form())
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn file_names_hold_time_and_id() {
        let id = SessionId::new("0197a0c2-5c7e-7c11-9b7a-2f6f0a6d9e01").unwrap();
        assert_eq!(
            file_name(Timestamp::from_millis(1_780_643_934_123), &id),
            "2026-06-05T07-18-54-123Z_0197a0c2-5c7e-7c11-9b7a-2f6f0a6d9e01.jsonl"
        );
    }
}
