//! Particles that depend on the sound before them: 파일을, 디렉터리를.

/// The two forms of a particle: behind a consonant, behind a vowel.
const PAIRS: [(&str, &str); 6] =
    [("을", "를"), ("이", "가"), ("은", "는"), ("과", "와"), ("으로", "로"), ("이라는", "라는")];

/// The form of a particle (named by its form behind a consonant) that fits behind a text; `None` when it is none that changes.
pub(crate) fn after(text: &str, particle: &str) -> Option<&'static str> {
    let &(consonant, vowel) = PAIRS.iter().find(|(consonant, _)| *consonant == particle)?;
    let last = text.chars().rev().find(|c| c.is_alphanumeric());
    Some(match last.map(sound) {
        Some(Sound::Rieul) if consonant == "으로" => vowel,
        Some(Sound::Consonant | Sound::Rieul) => consonant,
        _ => vowel,
    })
}

/// How a syllable ends.
enum Sound {
    Vowel,
    Consonant,
    Rieul,
}

fn sound(c: char) -> Sound {
    match c {
        // Precomposed syllables (Unicode 3.12): 28 finals each, none first, ㄹ the eighth.
        '가'..='힣' => match (u32::from(c) - 0xAC00) % 28 {
            0 => Sound::Vowel,
            8 => Sound::Rieul,
            _ => Sound::Consonant,
        },
        // 일, 칠, 팔; 영, 삼, 육.
        '1' | '7' | '8' => Sound::Rieul,
        '0' | '3' | '6' => Sound::Consonant,
        // As such names mostly are read: 셸, 폼, 세션. Other consonants get a vowel behind them: 헬프, 리스트.
        'l' | 'L' => Sound::Rieul,
        'm' | 'M' | 'n' | 'N' => Sound::Consonant,
        _ => Sound::Vowel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sound_decides() {
        for (text, particle, expected) in [
            ("파일", "을", "을"),
            ("디렉터리", "을", "를"),
            ("파일", "으로", "로"),
            ("세션", "으로", "으로"),
            ("\"폴더\"", "이", "가"),
            ("3", "은", "은"),
            ("session.jsonl", "을", "을"),
            ("'--help'", "을", "를"),
            ("세션", "이라는", "이라는"),
            ("'--no-such'", "이라는", "라는"),
            ("", "을", "를"),
        ] {
            assert_eq!(after(text, particle), Some(expected), "{text}");
        }
        assert_eq!(after("파일", "에"), None);
    }
}
