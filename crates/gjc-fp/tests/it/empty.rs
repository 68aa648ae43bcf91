use std::io;

fn steps(len: usize) -> io::Result<usize> {
    gjc_fp::fp!("test.before");
    gjc_fp::fp!("test.io", io)?;
    gjc_fp::fp!("test.write", io, len)
}

#[test]
fn every_form_is_nothing() {
    const { gjc_fp::fp!("test.at_compile_time") };
    assert_eq!(steps(5).unwrap(), 5);
}
