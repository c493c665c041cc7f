//! Zip archives that are made byte by byte, so that they may lie.

/// What a hostile packer can put into an entry of a zip archive.
#[derive(Clone)]
pub(super) struct Zipped {
    pub(super) name: &'static [u8],
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) data: Vec<u8>,
    pub(super) size: u32,
    pub(super) extra: Vec<u8>,
    /// What stands behind the data.
    pub(super) behind: Vec<u8>,
    pub(super) system: u8,
    pub(super) attributes: u32,
}

pub(super) const CRC: u32 = 0xadf3_f363;

impl Zipped {
    /// A file that holds `data`, whose sum is `CRC`, as it is.
    pub(super) fn file(name: &'static str) -> Self {
        Self {
            name: name.as_bytes(),
            flags: 0,
            method: 0,
            data: b"data".to_vec(),
            size: 4,
            extra: Vec::new(),
            behind: Vec::new(),
            system: 3,
            attributes: 0o100_644 << 16,
        }
    }

    /// What both headers say, up to the lengths of the name and of the extra field.
    fn fields(&self) -> Vec<u8> {
        let mut fields = vec![20, 0];
        fields.extend(self.flags.to_le_bytes());
        fields.extend(self.method.to_le_bytes());
        fields.extend([0; 4]);
        fields.extend(CRC.to_le_bytes());
        fields.extend(u32::try_from(self.data.len()).unwrap().to_le_bytes());
        fields.extend(self.size.to_le_bytes());
        fields.extend(u16::try_from(self.name.len()).unwrap().to_le_bytes());
        fields.extend(u16::try_from(self.extra.len()).unwrap().to_le_bytes());
        fields
    }

    fn local(&self) -> Vec<u8> {
        let signed = [b"PK\x03\x04", self.fields().as_slice(), self.name].concat();
        [&signed, &self.extra, &self.data, &self.behind]
            .map(Vec::as_slice)
            .concat()
    }

    fn central(&self, start: usize) -> Vec<u8> {
        let mut record = [b"PK\x01\x02\x14".as_slice(), &[self.system], &self.fields()].concat();
        record.extend([0; 6]);
        record.extend(self.attributes.to_le_bytes());
        record.extend(u32::try_from(start).unwrap().to_le_bytes());
        [record.as_slice(), self.name, &self.extra].concat()
    }
}

/// The entries in a row, the directory, the end record.
pub(super) fn zip_made(entries: &[Zipped]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        directory.extend(entry.central(bytes.len()));
        bytes.extend(entry.local());
    }
    let start = u32::try_from(bytes.len()).unwrap();
    let size = u32::try_from(directory.len()).unwrap();
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    bytes.extend([count, count].concat());
    bytes.extend(size.to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}
