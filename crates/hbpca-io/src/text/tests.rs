use super::*;
use std::io::Cursor;

fn chunks(text: String, end: RecordEnd) -> TextChunks {
    let mut text = TextChunks::new("f", Box::new(Cursor::new(text.into_bytes())), None);
    if end == RecordEnd::UnquotedLine {
        text.respect_quotes();
    }
    text
}

fn all(mut text: TextChunks) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    loop {
        let more = text.parse(|piece| Ok(piece.to_vec())).unwrap();
        if more.is_empty() {
            return pieces;
        }
        pieces.extend(more);
    }
}

#[test]
fn pieces_are_whole_lines_and_make_up_the_text() {
    let text = (0..3_000_000).map(|i| i.to_string()).collect::<Vec<_>>().join("\n") + "\n";
    let pieces = all(chunks(text.clone(), RecordEnd::Line));
    assert!(pieces.len() > 30);
    assert!(pieces.iter().all(|piece| piece.ends_with(b"\n")));
    assert_eq!(pieces.concat(), text.as_bytes());
}

#[test]
fn quoted_line_ends_do_not_cut() {
    let record = format!("\"a \"\"b\"\"\n{}\",1\n", "x".repeat(1000));
    let text = record.repeat(20_000);
    let pieces = all(chunks(text.clone(), RecordEnd::UnquotedLine));
    assert!(pieces.len() > 10);
    assert!(pieces.iter().all(|piece| piece.starts_with(b"\"a") && piece.ends_with(b",1\n")));
    assert_eq!(pieces.concat(), text.as_bytes());
}

/// Where the first quote comes after the first chunk, and lines before it were cut at every line end.
#[test]
fn quotes_are_respected_from_the_first_one_on() {
    let plain = "1,2\n".repeat(SMALLEST_CHUNK / 2);
    let record = format!("\"a\n{}\",1\n", "x".repeat(100));
    let text = plain + &record.repeat(20_000);
    let pieces = all(chunks(text.clone(), RecordEnd::UnquotedLine));
    assert_eq!(pieces.concat(), text.as_bytes());
    assert!(pieces.iter().all(|piece| piece.starts_with(b"\"a") || piece.starts_with(b"1,2")));
    assert!(pieces.iter().all(|piece| piece.ends_with(b",1\n") || piece.ends_with(b",2\n")));
}

#[test]
fn as_much_is_shown_as_is_asked_for() {
    let text = format!("{}\n{}\nend\n", "7".repeat(3 * SMALLEST_CHUNK), "8".repeat(SMALLEST_CHUNK));
    let mut chunks = chunks(text.clone(), RecordEnd::Line);
    let two = |head: &[u8]| count_lines(head) >= 2;
    assert!(count_lines(chunks.peek().unwrap()) == 1 && count_lines(chunks.peek_until(two).unwrap()) >= 2);
    assert_eq!(chunks.peek_until(|_| false).unwrap().len(), text.len());
    assert_eq!(all(chunks).concat(), text.as_bytes());
}

#[test]
fn a_line_longer_than_a_chunk_stays_whole() {
    let text = format!("{}\nend", "7".repeat(2 * SMALLEST_CHUNK + 5));
    let pieces = all(chunks(text.clone(), RecordEnd::Line));
    assert_eq!(pieces.concat(), format!("{text}\n").as_bytes());
    assert_eq!(pieces[0].len(), 2 * SMALLEST_CHUNK + 6);
}

#[test]
fn a_fault_is_placed_by_line_and_character() {
    let mut lines = vec!["good"; 4_000_000];
    lines[3_900_000] = "žluť bad";
    let mut text = chunks(lines.join("\n"), RecordEnd::Line);
    let find = |piece: &[u8]| match memchr::memmem::find(piece, b"bad") {
        Some(at) => Err(Fault::new(at, "oh")),
        None => Ok(()),
    };
    let error = loop {
        if let Err(error) = text.parse(find) {
            break error;
        }
    };
    assert_eq!(error.to_string(), "f:3900001:6: oh");
}

#[test]
fn skipped_lines_are_counted() {
    let mut text = chunks("header\nx\n".into(), RecordEnd::Line);
    assert_eq!(text.peek().unwrap(), b"header\nx\n");
    text.skip(7);
    text.respect_quotes();
    let error = text.parse(|_| Err::<(), _>(Fault::new(0, "no"))).unwrap_err();
    assert_eq!(error.to_string(), "f:2:1: no");
    assert!(all(chunks(String::new(), RecordEnd::Line)).is_empty());
}
