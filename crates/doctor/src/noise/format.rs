//! The layout of one kind of event, as `events/SYSTEM/NAME/format` describes it.

/// Where an event's fields lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// `common_type` of its records.
    pub id: u16,
    fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    offset: usize,
    size: usize,
    /// `__data_loc`: the field holds the offset (low half) and length (high half) of the data.
    elsewhere: bool,
}

impl Format {
    /// Reads the text of a `format` file; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?;
        Some(Self {
            id: id.trim().parse().ok()?,
            fields: text.lines().filter_map(field).collect(),
        })
    }

    /// An integer field of a record, zero-extended.
    pub fn number(&self, record: &[u8], name: &str) -> Option<u64> {
        let field = self.field(name)?;
        let bytes = record.get(field.offset..)?.get(..field.size)?;
        (field.size <= 8).then(|| {
            let mut wide = [0; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(wide)
        })
    }

    /// A text field of a record, up to its first zero.
    pub fn text(&self, record: &[u8], name: &str) -> Option<String> {
        let field = self.field(name)?;
        let (offset, len) = if field.elsewhere {
            let place = self.number(record, name)? as u32;
            ((place & 0xFFFF) as usize, (place >> 16) as usize)
        } else {
            (field.offset, field.size)
        };
        let bytes = record.get(offset..)?.get(..len)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(len);
        Some(plain(&String::from_utf8_lossy(&bytes[..end])))
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// The name of a thread or program. Anybody may give it, and by what ends a line, too: that is `?`.
pub fn plain(name: &str) -> String {
    name.replace(char::is_control, "?")
}

/// One line: `field:char prev_comm[16]; offset:8; size:16; signed:0;`
fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let number = |part: Option<&str>, key: &str| part?.strip_prefix(key)?.parse::<usize>().ok();
    let offset = number(parts.next(), "offset:")?;
    let size = number(parts.next(), "size:")?;
    let name = declaration.rsplit([' ', '*']).next()?;
    let name = name.split('[').next()?;
    Some(Field {
        name: name.to_owned(),
        offset,
        size,
        elsewhere: declaration.starts_with("__data_loc"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch
ID: 372
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:__data_loc char[] name;	offset:28;	size:4;	signed:0;
	field:void * callback;	offset:32;	size:8;	signed:0;

print fmt: \"field:%d\", REC->prev_pid
";

    #[test]
    fn fields_are_found_by_name() {
        let format = Format::parse(SWITCH).unwrap();
        assert_eq!(format.id, 372);
        let mut record = vec![0; 40];
        record[4..8].copy_from_slice(&(-1_i32).to_le_bytes());
        record[8..12].copy_from_slice(b"tick");
        record[24..28].copy_from_slice(&77_u32.to_le_bytes());
        record[28..32].copy_from_slice(&(0x28_u32 | 7 << 16).to_le_bytes());
        record[32..40].copy_from_slice(&0xFFFF_FFFF_8100_0000_u64.to_le_bytes());
        record.extend_from_slice(b"virtio\0");
        assert_eq!(format.text(&record, "prev_comm").as_deref(), Some("tick"));
        assert_eq!(format.number(&record, "prev_pid"), Some(77));
        assert_eq!(format.number(&record, "callback"), Some(0xFFFF_FFFF_8100_0000));
        assert_eq!(format.text(&record, "name").as_deref(), Some("virtio"));
        assert_eq!(format.number(&record[..30], "callback"), None, "a short record");
        assert_eq!(format.number(&record, "next_pid"), None);
    }

    #[test]
    fn what_is_no_format_is_none() {
        assert_eq!(Format::parse("name: x\nformat:\n"), None);
    }
}
