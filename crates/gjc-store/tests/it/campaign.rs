//! Every kind of damage at every byte of a small session, and at random places of large ones.
//!
//! Each damaged file is looked at in all the ways there are (reader, list, every body, context, writer), an entry is
//! appended, and the file is read again. What is owed stands in `testkit::damage`, which shares no code with the scan.

use gjc_context::select;
use gjc_entry::{Clock, DamageKind, Ids, Leaf, Ordinal, Source, Timestamp};
use gjc_log::fs::sim::SimFs;
use gjc_log::fs::{Fs, FsFile, Open};
use gjc_log::{Batch, BlobStore, Durability, LogEnv, OpenError, Reader, Repaired, Tail, Writer};
use gjc_store::sweep_all;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use testkit::damage::{AT_BYTES, AT_LINES, Damaged, Flaw, Kind, Look, Lost, Model, Sound};
use testkit::{SeededIds, VirtualClock};

/// A machine with one session file on it.
struct Machine {
    fs: SimFs,
    file: PathBuf,
}

impl Machine {
    /// Folders only; each case begins with a copy.
    fn empty() -> SimFs {
        let fs = SimFs::new();
        for dir in ["/agent", "/agent/sessions", "/agent/sessions/--작업--"] {
            fs.mkdir(dir.as_ref()).unwrap();
        }
        fs.settle();
        fs
    }

    fn with(empty: &SimFs, bytes: &[u8]) -> Self {
        let (fs, file) = (empty.kill(), PathBuf::from("/agent/sessions/--작업--/s.jsonl"));
        fs.open(&file, Open::CreateNew).unwrap().append(bytes).unwrap();
        Self { fs, file }
    }

    fn env(&self) -> LogEnv<SimFs> {
        let fs = Arc::new(self.fs.clone());
        LogEnv {
            blobs: Arc::new(BlobStore::new(Arc::clone(&fs), Some("/agent/blobs".into()))),
            fs,
            clock: Arc::new(VirtualClock::at(Timestamp::from_millis(1_790_000_000_000))) as Arc<dyn Clock>,
            ids: Arc::new(SeededIds::new(11)) as Arc<dyn Ids>,
            durability: Durability::Turn,
            agent_dir: None,
        }
    }
}

/// One case, from the damaged file to the entry behind the damage.
fn case(empty: &SimFs, sound: &Sound, damaged: &Damaged, model: &Model<'_>) -> Result<(), Flaw> {
    let machine = Machine::with(empty, &damaged.bytes);
    let Machine { fs, file } = &machine;
    let disagree = |what: String| Err(Flaw::Disagree(what));
    let untouched = |who: &str| {
        let same = fs.read(file).unwrap() == damaged.bytes && fs.list(file.parent().unwrap()).unwrap().len() == 1;
        if same { Ok(()) } else { Err(Flaw::Changed(format!("{who} has changed the file"))) }
    };
    let before = fs.stat(file).unwrap();

    let opened = Reader::open(fs, file);
    let (infos, unreadable) = sweep_all(fs, Path::new("/agent/sessions")).unwrap();
    if infos.len() + unreadable.len() != 1 || infos.len() != usize::from(opened.is_ok()) {
        return disagree(format!("the list has {} sessions and {} others", infos.len(), unreadable.len()));
    }
    let loaded = match opened {
        Ok(loaded) => loaded,
        Err(why) => {
            if Writer::open(machine.env(), file).is_ok() {
                return disagree(format!("the reader says {why}, the writer opens"));
            }
            untouched("a refusal")?;
            return if model.must_open() { Err(Flaw::Refused(why.to_string())) } else { Ok(()) };
        }
    };
    let look = Look::through(&loaded.value, &loaded.damage);
    // What does no harm to an entry is told by verify alone.
    let (harmless, bodies): (Vec<_>, Vec<_>) =
        loaded.value.verify_bodies().into_iter().partition(|damage| damage.kind.is_harmless());
    if bodies.len() + loaded.damage.len() != look.reports.len() {
        return disagree("verify_bodies and body()".into());
    }
    let mut told = look.clone();
    told.reports.extend(harmless.iter().filter(|damage| damage.kind != DamageKind::Surrogates).map(Into::into));
    model.check(&told)?;
    contexts(&loaded.value);
    let tail = if model.complete() == damaged.bytes.len() {
        Tail::Clean
    } else {
        Tail::Growing { at: model.complete() as u64 }
    };
    if loaded.tail != tail {
        return disagree(format!("the file ends {:?}, which is {tail:?}", loaded.tail));
    }
    let messages = loaded.value.skeleton().unwrap().iter().filter(|(_, n)| n.kind() == gjc_entry::Kind::Message);
    if (infos[0].messages, infos[0].damaged) != (messages.count(), loaded.damage.len()) {
        return disagree(format!("list {:?} and look {:?}", infos[0], loaded.damage));
    }
    if fs.stat(file).unwrap() != before {
        return Err(Flaw::Changed("a look has touched the file".into()));
    }
    untouched("a look")?;
    drop(loaded);
    go_on(&machine, sound, damaged, model, &look)
}

/// Opens for writing, appends, and reads again.
fn go_on(machine: &Machine, sound: &Sound, damaged: &Damaged, model: &Model<'_>, look: &Look) -> Result<(), Flaw> {
    let Machine { fs, file } = machine;
    let (mut loaded, repaired) = match Writer::open(machine.env(), file) {
        // One byte can make another version of it; such a session goes on in a copy.
        Err(OpenError::Old { .. }) if !model.header_is_alone() => return Ok(()),
        opened => opened.map_err(|why| Flaw::Disagree(format!("the writer refuses: {why}")))?,
    };
    let (whole, torn) = damaged.bytes.split_at(model.complete());
    let repaired_bytes = fs.read(file).unwrap();
    let kept = match repaired {
        Repaired::Cut { .. } => fs.read(file.with_extension("jsonl.torn")).unwrap_or_default(),
        _ => Vec::new(),
    };
    // A torn end is cut and kept; a record in it that is whole stays.
    let stays = damaged.intact.iter().find(|(index, off)| {
        let end = off + sound.records[*index].span.len();
        *index > 0 && *off == model.complete() && damaged.bytes[end..].iter().all(|byte| *byte == 0)
    });
    let rest = match stays {
        Some((index, off)) => &damaged.bytes[*off..off + sound.records[*index].span.len()],
        None => &[],
    };
    let record = [rest, if rest.is_empty() { &b""[..] } else { b"\n" }].concat();
    let after = repaired_bytes.strip_prefix(whole).ok_or_else(|| Flaw::Changed("complete lines".into()))?;
    let valid = serde_json::from_slice::<serde::de::IgnoredAny>(torn).is_ok();
    if stays.is_some() && after != record {
        let (id, how) = (sound.records[stays.map_or(0, |stays| stays.0)].id.clone(), Lost::Torn);
        return Err(Flaw::Lost { id, off: model.complete(), how });
    }
    let cut = torn.strip_prefix(after.strip_suffix(b"\n").unwrap_or(after)).unwrap_or(torn);
    if !(after.is_empty() || stays.is_some() || valid && after.strip_suffix(b"\n") == Some(torn)) {
        return Err(Flaw::Changed(format!("{} bytes of a torn end became {}", torn.len(), after.len())));
    }
    if !cut.is_empty() && !kept.windows(cut.len()).any(|window| window == cut) {
        return Err(Flaw::Changed("a torn end was cut and is not kept".into()));
    }
    let mended = Look::through(&loaded.value, &loaded.damage);
    if after.is_empty() && mended != *look {
        return Err(Flaw::Disagree(format!("reader {look:?}\nwriter {mended:?}")));
    }
    if !mended.nodes.starts_with(&look.nodes) || mended.nodes.len() > look.nodes.len() + 1 {
        return Err(Flaw::Disagree(format!("{} entries, then {}", look.nodes.len(), mended.nodes.len())));
    }
    let appended = loaded.value.append(Batch::One(testkit::session::draft(testkit::session::user("이어서"))));
    let id = appended.map_err(|why| Flaw::Append(why.to_string()))?.ids[0].to_string();
    drop(loaded);
    let now = fs.read(file).unwrap();
    let line = now.strip_prefix(&repaired_bytes[..]).ok_or_else(|| Flaw::Changed("bytes before the append".into()))?;
    if line.iter().filter(|byte| **byte == b'\n').count() != 1 || line.last() != Some(&b'\n') {
        return Err(Flaw::Append("it is not one line".into()));
    }
    let again = Reader::open(fs, file).map_err(|why| Flaw::Append(why.to_string()))?;
    let last = Look::through(&again.value, &again.damage);
    let (new, old) = last.nodes.split_last().ok_or_else(|| Flaw::Append("there is no entry".into()))?;
    if old != mended.nodes || last.reports != mended.reports || last.leaf != Some(old.len()) {
        return Err(Flaw::Append(format!("before {mended:?}\nafter {last:?}")));
    }
    if new.id != id || new.parent != mended.leaf || new.body.as_ref() != Some(&id) {
        return Err(Flaw::Append(format!("{new:?}")));
    }
    Ok(())
}

/// The context at the leaf, at the root and in between: whatever it is, there is one.
fn contexts(source: &dyn Source) {
    let len = source.skeleton().unwrap().len();
    for leaf in [Leaf::Current, Leaf::Root, Leaf::At(Ordinal((len / 2) as u32)), Leaf::At(Ordinal(u32::MAX))] {
        select(source, leaf).unwrap();
    }
}

/// Runs cases; tells how many a second, and fails with the first flaw of each kind.
fn campaign(name: &str, sound: &Sound, cases: impl IntoIterator<Item = Damaged>) {
    let (began, empty) = (Instant::now(), Machine::empty());
    let (mut count, mut flaws) = (0, Vec::new());
    for damaged in cases {
        count += 1;
        let model = Model::new(sound, &damaged);
        if let Err(flaw) = case(&empty, sound, &damaged, &model) {
            flaws.push(format!("{damaged}: {flaw}"));
        }
    }
    let took = began.elapsed();
    let rate = f64::from(count) / took.as_secs_f64();
    println!("{name}: {count} cases in {took:.1?}, {rate:.0} a second");
    let dense: BTreeMap<&str, (usize, &str)> = flaws.iter().fold(BTreeMap::new(), |mut all, flaw| {
        let kind = flaw.split(" at ").next().unwrap();
        all.entry(kind).or_insert((0, flaw)).0 += 1;
        all
    });
    assert!(flaws.is_empty(), "{name}: {} of {count} cases fail\n{dense:#?}", flaws.len());
}

fn at_every_byte(kinds: &[Kind], sound: &Sound) -> impl Iterator<Item = Damaged> {
    kinds.iter().flat_map(move |(_, damage)| (0..sound.len()).map(move |at| damage(sound, at)))
}

fn kinds(prefix: &str) -> Vec<Kind> {
    AT_BYTES.iter().copied().filter(|(name, _)| name.starts_with(prefix)).collect()
}

fn small(prefix: &str) {
    let (sound, kinds) = (Sound::small(), kinds(prefix));
    assert!(!kinds.is_empty());
    campaign(prefix, &sound, at_every_byte(&kinds, &sound));
}

#[test]
fn sound_files_are_sound() {
    for sound in [Sound::small(), Sound::large(1, 40, 300_000)] {
        let whole = sound.put("nothing", sound.len(), b"");
        campaign("sound", &sound, [whole]);
    }
}

#[test]
fn a_cut_at_every_byte() {
    small("cut");
}

#[test]
fn nul_holes_at_every_byte() {
    small("NUL");
}

#[test]
fn each_of_the_lower_bits_flipped() {
    for bit in ["flip 0", "flip 1", "flip 2", "flip 3"] {
        small(bit);
    }
}

#[test]
fn each_of_the_higher_bits_flipped() {
    for bit in ["flip 4", "flip 5", "flip 6", "flip 7"] {
        small(bit);
    }
}

#[test]
fn other_signs_of_json_at_every_byte() {
    for prefix in ["a quote", "a backslash", "a brace", "a line feed"] {
        small(prefix);
    }
}

#[test]
fn halves_of_letters_at_every_byte() {
    for prefix in ["half a letter", "a BOM", "a lone surrogate"] {
        small(prefix);
    }
}

#[test]
fn bytes_missing_at_every_byte() {
    small("a byte missing");
    small("300 bytes");
}

#[test]
fn a_record_cut_at_every_byte_and_then_whole() {
    small("a cut record");
    small("a record cut");
}

#[test]
fn every_kind_of_damage_to_every_line() {
    let sound = Sound::small();
    let lines = 1..sound.records.len();
    campaign("lines", &sound, AT_LINES.iter().flat_map(|(_, damage)| lines.clone().map(|line| damage(&sound, line))));
}

#[test]
fn random_damage_to_large_files() {
    for seed in 0..2 {
        let sound = Sound::large(seed, 60, 400_000);
        let random = SeededIds::new(seed ^ 0xDA);
        let bytes = AT_BYTES.iter().map(|(_, damage)| damage(&sound, random.next() as usize % sound.len()));
        let lines =
            AT_LINES.iter().map(|(_, damage)| damage(&sound, 1 + random.next() as usize % (sound.records.len() - 1)));
        let cases: Vec<Damaged> = bytes.chain(lines).collect();
        campaign("large", &sound, cases);
    }
}

#[test]
fn a_line_of_12_mb_is_hit() {
    let sound = Sound::large(5, 20, 12_000_000);
    let line = sound.records.iter().max_by_key(|record| record.span.len()).unwrap().span.clone();
    let middle = line.start + line.len() / 2;
    let at = |kind: &str, at| AT_BYTES.iter().find(|(name, _)| *name == kind).unwrap().1(&sound, at);
    let cases = [
        at("cut", middle),
        at("NUL over 4096", middle),
        at("a quote over", middle),
        at("half a letter over", middle),
        at("a line feed over", middle),
        at("a cut record glued to its whole", middle),
        at("a record cut, then whole", middle),
        at("a byte missing", line.end),
    ];
    campaign("12 MB", &sound, cases);
}
