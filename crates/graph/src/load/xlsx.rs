//! Excel workbooks: each sheet as the text of a CSV table.
//!
//! ECMA-376, Office Open XML, Part 1, §18 (SpreadsheetML). Values are read, formulas by the value
//! that was computed last; what is formatted as a date is one; errors are empty cells.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;
use zip::result::ZipError;

/// Columns of a sheet: what Excel itself allows.
const MAX_COLUMNS: usize = 16_384;
/// Bytes of one part of a workbook, unpacked. A guess: Excel's million rows are below it.
const MAX_PART: u64 = 2 << 30;

/// A sheet that has cells.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) name: String,
    pub(crate) csv: String,
}

/// The sheets of a workbook; texts of all have at most `max_text` bytes.
///
/// # Errors
/// A sentence, if it is no workbook, or damaged, or too large.
pub(crate) fn sheets(file: File, max_text: u64) -> Result<Vec<Sheet>, String> {
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|e| zip_fault(&e))?;
    let mut left = max_text;
    let workbook = part(&mut archive, "xl/workbook.xml", &mut left)?
        .ok_or("it is a zip archive, and no Excel workbook (.xlsx)")?;
    let relations = part(&mut archive, "xl/_rels/workbook.xml.rels", &mut left)?;
    let targets = targets(&relations.unwrap_or_default())?;
    let texts = match part(&mut archive, "xl/sharedStrings.xml", &mut left)? {
        Some(xml) => shared_texts(&xml)?,
        None => Vec::new(),
    };
    let styles = match part(&mut archive, "xl/styles.xml", &mut left)? {
        Some(xml) => date_styles(&xml)?,
        None => Vec::new(),
    };
    let (listed, from_1904) = listed(&workbook)?;
    let mut sheets = Vec::new();
    for (name, id) in listed {
        let Some(place) = targets.get(&id) else {
            continue;
        };
        let Some(xml) = part(&mut archive, place, &mut left)? else {
            continue;
        };
        let reading = Reading {
            texts: &texts,
            dates: &styles,
            from_1904,
        };
        let csv = reading
            .csv(&xml)
            .map_err(|e| format!("its sheet `{name}`: {e}"))?;
        left = left
            .checked_sub(csv.len() as u64)
            .ok_or_else(|| too_long(max_text))?;
        if !csv.is_empty() {
            sheets.push(Sheet { name, csv });
        }
    }
    Ok(sheets)
}

fn too_long(max_text: u64) -> String {
    format!("it has more than {max_text} bytes of text when unpacked")
}

fn zip_fault(error: &ZipError) -> String {
    format!("it is no Excel workbook (.xlsx), or damaged: {error}")
}

fn xml_fault(error: impl std::fmt::Display) -> String {
    format!("its XML is damaged: {error}")
}

/// A part of the workbook, unpacked; none if there is none.
fn part(
    archive: &mut ZipArchive<BufReader<File>>,
    name: &str,
    left: &mut u64,
) -> Result<Option<Vec<u8>>, String> {
    let entry = match archive.by_name(name) {
        Ok(entry) => entry,
        Err(ZipError::FileNotFound) => return Ok(None),
        Err(error) => return Err(zip_fault(&error)),
    };
    let max = MAX_PART.min(*left);
    let mut bytes = Vec::new();
    let read = entry.take(max.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error: io::Error| format!("`{name}` in it is damaged: {error}"))?;
    if bytes.len() as u64 > max {
        return Err(too_long(max));
    }
    *left -= bytes.len() as u64;
    Ok(Some(bytes))
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = element.try_get_attribute(name).ok()??;
    Some(found.unescape_value().ok()?.into_owned())
}

/// Calls `each` with every event of a text; namespaces' prefixes are taken off names by `local`.
fn events(xml: &[u8], mut each: impl FnMut(Event<'_>) -> Result<(), String>) -> Result<(), String> {
    let mut reader = Reader::from_reader(xml);
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).map_err(xml_fault)? {
            Event::Eof => return Ok(()),
            event => each(event)?,
        }
    }
}

/// Places of the workbook's parts by the ids of their relations.
fn targets(xml: &[u8]) -> Result<HashMap<String, String>, String> {
    let mut found = HashMap::new();
    events(xml, |event| {
        if let Event::Start(e) | Event::Empty(e) = &event
            && e.local_name().as_ref() == b"Relationship"
            && let Some((id, target)) = attribute(e, "Id").zip(attribute(e, "Target"))
        {
            let place = match target.strip_prefix('/') {
                Some(whole) => whole.to_owned(),
                None => format!("xl/{target}"),
            };
            found.insert(id, place);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Names of sheets with the ids of their relations, and whether dates count from 1904.
fn listed(xml: &[u8]) -> Result<(Vec<(String, String)>, bool), String> {
    let (mut found, mut from_1904) = (Vec::new(), false);
    events(xml, |event| {
        if let Event::Start(e) | Event::Empty(e) = &event {
            match e.local_name().as_ref() {
                b"sheet" => {
                    let id = e.attributes().flatten();
                    let id = id
                        .into_iter()
                        .find(|a| a.key.local_name().as_ref() == b"id");
                    let id = id.and_then(|a| Some(a.unescape_value().ok()?.into_owned()));
                    found.extend(attribute(e, "name").zip(id));
                }
                b"workbookPr" => {
                    let flag = attribute(e, "date1904");
                    from_1904 = flag.is_some_and(|flag| flag == "1" || flag == "true");
                }
                _ => {}
            }
        }
        Ok(())
    })?;
    Ok((found, from_1904))
}

/// The texts that cells refer to by number.
fn shared_texts(xml: &[u8]) -> Result<Vec<String>, String> {
    let mut texts: Vec<String> = Vec::new();
    let (mut is_text, mut is_reading_aid) = (false, false);
    events(xml, |event| {
        match event {
            Event::Start(e) => match e.local_name().as_ref() {
                b"si" => texts.push(String::new()),
                b"t" => is_text = true,
                b"rPh" => is_reading_aid = true,
                _ => {}
            },
            // an empty text has a number too
            Event::Empty(e) if e.local_name().as_ref() == b"si" => texts.push(String::new()),
            Event::End(e) => match e.local_name().as_ref() {
                b"t" => is_text = false,
                b"rPh" => is_reading_aid = false,
                _ => {}
            },
            Event::Text(text) if is_text && !is_reading_aid => {
                if let Some(last) = texts.last_mut() {
                    last.push_str(&text.unescape().map_err(xml_fault)?);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(texts)
}

/// Which styles of cells are dates.
fn date_styles(xml: &[u8]) -> Result<Vec<bool>, String> {
    let (mut own, mut styles, mut are_cells) = (HashMap::new(), Vec::new(), false);
    events(xml, |event| {
        match &event {
            Event::Start(e) | Event::Empty(e) => match e.local_name().as_ref() {
                b"numFmt" => {
                    let pair = attribute(e, "numFmtId").zip(attribute(e, "formatCode"));
                    own.extend(pair.map(|(id, code)| (id, is_date_code(&code))));
                }
                b"cellXfs" => are_cells = true,
                b"xf" if are_cells => {
                    let id = attribute(e, "numFmtId").unwrap_or_default();
                    let is_built_in = matches!(id.parse(), Ok(14..=17u32 | 22));
                    styles.push(own.get(&id).copied().unwrap_or(is_built_in));
                }
                _ => {}
            },
            Event::End(e) if e.local_name().as_ref() == b"cellXfs" => are_cells = false,
            _ => {}
        }
        Ok(())
    })?;
    Ok(styles)
}

/// Whether a format shows years, or days of months: what is in quotes or brackets is no format.
fn is_date_code(code: &str) -> bool {
    let (mut quoted, mut bracketed, mut skipped) = (false, false, false);
    let (mut year, mut day) = (false, false);
    for c in code.chars() {
        match c {
            _ if skipped => skipped = false,
            '\\' | '_' | '*' => skipped = true,
            '"' => quoted = !quoted,
            '[' if !quoted => bracketed = true,
            ']' if !quoted => bracketed = false,
            'y' | 'Y' if !quoted && !bracketed => year = true,
            'd' | 'D' if !quoted && !bracketed => day = true,
            _ => {}
        }
    }
    year || day
}

/// What cells are read by.
struct Reading<'a> {
    texts: &'a [String],
    dates: &'a [bool],
    from_1904: bool,
}

impl Reading<'_> {
    fn csv(&self, xml: &[u8]) -> Result<String, String> {
        let mut csv = String::new();
        let mut row: Vec<String> = Vec::new();
        let (mut column, mut kind, mut style) = (0, String::new(), None);
        let (mut value, mut is_value) = (String::new(), false);
        let mut is_wide = false;
        events(xml, |event| {
            match &event {
                Event::Start(e) | Event::Empty(e) if e.local_name().as_ref() == b"c" => {
                    column = match attribute(e, "r") {
                        Some(place) => column_of(&place).unwrap_or(row.len()),
                        None => row.len(),
                    };
                    is_wide |= column >= MAX_COLUMNS;
                    kind = attribute(e, "t").unwrap_or_default();
                    style = attribute(e, "s").and_then(|s| s.parse::<usize>().ok());
                    value.clear();
                }
                Event::Start(e) if matches!(e.local_name().as_ref(), b"v" | b"t") => {
                    is_value = true;
                }
                Event::Text(text) if is_value => {
                    value.push_str(&text.unescape().map_err(xml_fault)?);
                }
                Event::End(e) => match e.local_name().as_ref() {
                    b"v" | b"t" => is_value = false,
                    b"c" if column < MAX_COLUMNS => {
                        if row.len() <= column {
                            row.resize(column + 1, String::new());
                        }
                        row[column] = self.cell(&value, &kind, style);
                    }
                    b"row" => push_row(&mut csv, &mut row),
                    _ => {}
                },
                _ => {}
            }
            Ok(())
        })?;
        match is_wide {
            true => Err(format!("it has more than {MAX_COLUMNS} columns")),
            false => Ok(csv),
        }
    }

    fn cell(&self, value: &str, kind: &str, style: Option<usize>) -> String {
        match kind {
            "s" => {
                let place = value.trim().parse::<usize>().ok();
                place
                    .and_then(|at| self.texts.get(at))
                    .cloned()
                    .unwrap_or_default()
            }
            "b" => if value.trim() == "1" { "true" } else { "false" }.to_owned(),
            "e" => String::new(),
            "" | "n" if style.is_some_and(|s| self.dates.get(s) == Some(&true)) => {
                let date = value
                    .trim()
                    .parse()
                    .ok()
                    .and_then(|n| date(n, self.from_1904));
                date.unwrap_or_else(|| value.to_owned())
            }
            _ => value.to_owned(),
        }
    }
}

/// The column of a place such as `AB12`, from 0.
fn column_of(place: &str) -> Option<usize> {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic);
    let number = letters.fold(0usize, |all, letter| {
        all.saturating_mul(26) + usize::from(letter.to_ascii_uppercase() - b'A') + 1
    });
    number.checked_sub(1)
}

/// A date, and the time where there is one, by the number of days that Excel counts.
fn date(days: f64, from_1904: bool) -> Option<String> {
    // day 0 in days since 1970-01-01: 1899-12-30, or 1904-01-01
    let begin = if from_1904 { -24_107 } else { -25_569 };
    // up to the year 9999; below 1 it is a time alone
    if !(1.0..2_958_466.0).contains(&days) {
        return None;
    }
    let seconds = (days.fract() * 86_400.0).round() as i64;
    let days = days.trunc() as i64 + begin + seconds / 86_400;
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": days to year, month, day
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    let date = format!("{year:04}-{month:02}-{day:02}");
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    match seconds % 86_400 {
        0 => Some(date),
        _ => Some(format!(
            "{date}T{hours:02}:{minutes:02}:{:02}",
            seconds % 60
        )),
    }
}

fn push_row(csv: &mut String, row: &mut Vec<String>) {
    for (at, cell) in row.iter().enumerate() {
        if at > 0 {
            csv.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            csv.push('"');
            csv.push_str(&cell.replace('"', "\"\""));
            csv.push('"');
        } else {
            csv.push_str(cell);
        }
    }
    if row.iter().any(|cell| !cell.is_empty()) || !csv.is_empty() {
        csv.push('\n');
    }
    row.clear();
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    /// A workbook of these parts.
    fn workbook(parts: &[(&str, &str)]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let mut archive = zip::ZipWriter::new(&mut file);
        for (name, text) in parts {
            archive
                .start_file(*name, zip::write::SimpleFileOptions::default())
                .unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        archive.finish().unwrap();
        file.rewind().unwrap();
        file
    }

    const WORKBOOK: &str = "<workbook xmlns:r=\"r\"><workbookPr/><sheets>\
        <sheet name=\"Plants &amp; more\" sheetId=\"1\" r:id=\"rId1\"/><sheet name=\"Empty\" r:id=\"rId2\"/></sheets></workbook>";
    const RELATIONS: &str = "<Relationships><Relationship Id=\"rId1\" Target=\"worksheets/sheet1.xml\"/>\
        <Relationship Id=\"rId2\" Target=\"/xl/worksheets/sheet2.xml\"/></Relationships>";

    #[test]
    fn sheets_become_tables_with_texts_numbers_dates_and_gaps() {
        let file = workbook(&[
            ("xl/workbook.xml", WORKBOOK),
            ("xl/_rels/workbook.xml.rels", RELATIONS),
            (
                "xl/sharedStrings.xml",
                "<sst><si><t>name</t></si><si><r><t>Mi</t></r><r><t>nt, \"green\"</t></r></si>\
                 <si/><si><t>planted</t><rPh><t>x</t></rPh></si></sst>",
            ),
            (
                "xl/styles.xml",
                "<styleSheet><numFmts><numFmt numFmtId=\"170\" formatCode=\"yyyy\\-mm\\-dd\"/>\
                 <numFmt numFmtId=\"171\" formatCode=\"0.0 &quot;days&quot;\"/></numFmts>\
                 <cellStyleXfs><xf numFmtId=\"14\"/></cellStyleXfs>\
                 <cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/><xf numFmtId=\"170\"/><xf numFmtId=\"171\"/></cellXfs></styleSheet>",
            ),
            (
                "xl/worksheets/sheet1.xml",
                "<worksheet><sheetData>\
                 <row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"C1\" t=\"s\"><v>3</v></c><c r=\"D1\" t=\"inlineStr\"><is><t>height</t></is></c></row>\
                 <row r=\"2\"><c r=\"A2\" t=\"s\"><v>1</v></c><c r=\"B2\" t=\"e\"><v>#N/A</v></c><c r=\"C2\" s=\"2\"><v>45658.75</v></c><c r=\"D2\" s=\"3\"><v>12.5</v></c></row>\
                 <row r=\"3\"><c t=\"str\"><f>A2</f><v>Sage</v></c><c t=\"b\"><v>1</v></c><c s=\"1\"><v>61</v></c></row>\
                 </sheetData></worksheet>",
            ),
            (
                "xl/worksheets/sheet2.xml",
                "<worksheet><sheetData/></worksheet>",
            ),
        ]);
        let sheets = sheets(file, u64::MAX).unwrap();
        assert_eq!(sheets.len(), 1);
        assert_eq!(sheets[0].name, "Plants & more");
        assert_eq!(
            sheets[0].csv,
            "name,,planted,height\n\"Mint, \"\"green\"\"\",,2025-01-01T18:00:00,12.5\nSage,true,1900-03-01\n"
        );
    }

    #[test]
    fn days_are_counted_as_excel_counts_them() {
        assert_eq!(date(45_658.0, false).unwrap(), "2025-01-01");
        assert_eq!(date(61.0, false).unwrap(), "1900-03-01");
        assert_eq!(date(44_196.0, true).unwrap(), "2025-01-01");
        assert_eq!(date(0.5, false), None);
        assert_eq!(date(f64::NAN, false), None);
        assert_eq!(column_of("A1"), Some(0));
        assert_eq!(column_of("AB12"), Some(27));
        assert_eq!(column_of("12"), None);
        assert!(is_date_code("dd/mm/yy") && !is_date_code("[Red]0.0\" days\""));
    }

    #[test]
    fn what_is_no_workbook_or_too_large_is_refused() {
        let refused = |file, max| sheets(file, max).unwrap_err();
        assert!(refused(workbook(&[("a.txt", "hello")]), 100).contains("no Excel workbook"));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"PK\x03\x04 and no more").unwrap();
        file.rewind().unwrap();
        assert!(refused(file, 100).contains("no Excel workbook"));
        let long = " ".repeat(5000);
        let file = workbook(&[("xl/workbook.xml", &long)]);
        assert!(refused(file, 1000).contains("more than 1000 bytes"));
        let file = workbook(&[("xl/workbook.xml", "<workbook><sheets></wrong>")]);
        assert!(refused(file, 10_000).contains("XML is damaged"));
    }
}
