//! Names of buckets.

use std::path::Path;

/// The bucket of a working folder: its real path without the first separator, each `/`, `\` and `:` as `-`, between `--`.
/// All other characters stay, 한글 too. Not injective: `/a/b-c` and `/a-b/c` share a bucket.
#[must_use]
pub fn bucket_name(real_cwd: &Path) -> String {
    let text = real_cwd.to_string_lossy();
    let rest = text.strip_prefix(['/', '\\']).unwrap_or(&text);
    format!("--{}--", rest.replace(['/', '\\', ':'], "-"))
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
}
