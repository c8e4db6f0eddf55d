//! Tables of genes and of cells: a group of columns, or an array of records in older files.

use crate::block::Labels;
use crate::column_names::listed;
use crate::hdf5::{Array, Datatype, Fault, File, Member, Object, Value};

/// A table.
pub(super) enum Frame {
    /// One array or group a column.
    Columns(Object),
    /// One record a row.
    Records {
        /// The bytes of all records.
        bytes: Vec<u8>,
        size: usize,
        members: Vec<Member>,
    },
}

impl Frame {
    pub(super) fn open(file: &mut File, object: Object) -> Result<Self, Fault> {
        if !object.is_array() {
            return Ok(Self::Columns(object));
        }
        let array = file.array(&object)?;
        let bytes = all(file, &array)?;
        let Datatype::Table { size, members } = array.datatype else {
            return Err("it is an array, and none of records".into());
        };
        Ok(Self::Records { bytes, size, members })
    }

    pub(super) fn is_records(&self) -> bool {
        matches!(self, Self::Records { .. })
    }

    /// The names of its rows.
    pub(super) fn index(&self, file: &mut File) -> Result<Option<Vec<String>>, Fault> {
        match self {
            Self::Columns(group) => {
                let name = index_name(file, group)?;
                let Some(object) = file.find(group, &name)? else { return Ok(None) };
                Column::open(file, &object)?.texts(file).map(Some)
            }
            Self::Records { .. } => {
                let Some(column) = self.record("index").or_else(|| self.record("_index")) else {
                    return Ok(None);
                };
                column.texts(file).map(Some)
            }
        }
    }

    /// The names of its columns.
    fn names(&self, file: &mut File) -> Result<Vec<String>, Fault> {
        Ok(match self {
            Self::Columns(group) => {
                file.names(group)?.into_iter().filter(|name| !name.starts_with('_')).collect()
            }
            Self::Records { members, .. } => members.iter().map(|member| member.name.clone()).collect(),
        })
    }

    /// A column of the table, or `index` for the names of its rows: numbers or texts. `categories` are the names that whole numbers stand for, where an older
    /// file has such.
    pub(super) fn labels(
        &self,
        file: &mut File,
        name: &str,
        categories: Option<Vec<String>>,
    ) -> Result<Labels, Fault> {
        if let Self::Columns(group) = self
            && let Some(object) = file.find(group, name)?
            && let Some(texts) = categorical(file, group, &object, name)?
        {
            return Ok(Labels::Texts(texts));
        }
        match (self.column(file, name)?, categories) {
            (Some(column), Some(names)) => column.named(&names).map(Labels::Texts),
            (Some(column), None) => column.labels(file),
            (None, _) => match self.index(file)?.filter(|_| name == "index") {
                Some(names) => Ok(Labels::Texts(names)),
                None => {
                    let names = self.names(file)?;
                    Err(format!(
                        "the table of cells has no column `{name}`; it has `index`, {}",
                        listed(&names)
                    )
                    .into())
                }
            },
        }
    }

    fn column(&self, file: &mut File, name: &str) -> Result<Option<Column>, Fault> {
        match self {
            Self::Records { .. } => Ok(self.record(name)),
            Self::Columns(group) => match file.find(group, name)? {
                Some(object) => Column::open(file, &object).map(Some),
                None => Ok(None),
            },
        }
    }

    /// One column of the records.
    fn record(&self, name: &str) -> Option<Column> {
        let Self::Records { bytes, size, members } = self else { return None };
        let Member { offset, datatype, .. } = members.iter().find(|member| member.name == name)?;
        let end = offset + datatype.size();
        let bytes = bytes.chunks_exact(*size).flat_map(|record| &record[*offset..end]).copied().collect();
        Some(Column { datatype: datatype.clone(), bytes })
    }

    /// A column of true and false.
    pub(super) fn mask(&self, file: &mut File, name: &str) -> Result<Vec<bool>, Fault> {
        let Some(column) = self.column(file, name).map_err(|fault| fault.at(&format!("var/{name}")))? else {
            let names = self.names(file)?;
            return Err(format!(
                "--mask {name}: the table of genes has no such column; it has {}",
                listed(&names)
            )
            .into());
        };
        if !column.datatype.is_truth() {
            return Err(
                format!("--mask {name}: this column of the genes does not hold true and false").into()
            );
        }
        match column.bytes.iter().position(|byte| *byte > 1) {
            None => Ok(column.bytes.iter().map(|byte| *byte == 1).collect()),
            Some(at) => Err(format!("--mask {name}: row {} holds neither true nor false", at + 1).into()),
        }
    }
}

/// The texts of a column of categories; nothing if it is another column.
fn categorical(
    file: &mut File,
    table: &Object,
    object: &Object,
    name: &str,
) -> Result<Option<Vec<String>>, Fault> {
    let (codes, categories) = if object.is_array() {
        // As version 0.7 wrote them.
        let Some(all) = file.find(table, "__categories")? else { return Ok(None) };
        let Some(categories) = file.find(&all, name)? else { return Ok(None) };
        (Column::open(file, object)?, categories)
    } else {
        let Some(codes) = file.find(object, "codes")? else { return Ok(None) };
        let Some(categories) = file.find(object, "categories")? else { return Ok(None) };
        (Column::open(file, &codes)?, categories)
    };
    let names = Column::open(file, &categories)?.texts(file)?;
    codes.named(&names).map(Some)
}

/// The values of a column.
struct Column {
    datatype: Datatype,
    bytes: Vec<u8>,
}

impl Column {
    /// An array, or a group that holds one beside a mask of what is missing.
    fn open(file: &mut File, object: &Object) -> Result<Self, Fault> {
        if object.is_array() {
            return Self::open_array(file, object);
        }
        let Some(values) = file.find(object, "values")? else {
            return Err("it is a group of something else than values".into());
        };
        if let Some(mask) = file.find(object, "mask")?
            && Self::open_array(file, &mask)?.bytes.iter().any(|byte| *byte != 0)
        {
            return Err("some of its values are missing".into());
        }
        Self::open_array(file, &values)
    }

    fn open_array(file: &mut File, object: &Object) -> Result<Self, Fault> {
        let array = file.array(object)?;
        let bytes = all(file, &array)?;
        Ok(Self { datatype: array.datatype, bytes })
    }

    /// Numbers or texts.
    fn labels(&self, file: &mut File) -> Result<Labels, Fault> {
        match &self.datatype {
            Datatype::Number(element) => {
                let values = element.decode(&self.bytes);
                Ok(Labels::Numbers((0..values.len()).map(|at| values.get(at)).collect()))
            }
            truth if truth.is_truth() => {
                let name = |byte: &u8| if *byte == 0 { "False" } else { "True" }.to_owned();
                Ok(Labels::Texts(self.bytes.iter().map(name).collect()))
            }
            other => file.texts(other, &self.bytes).map(Labels::Texts),
        }
    }

    /// The names that whole numbers stand for; −1 stands for none.
    fn named(&self, names: &[String]) -> Result<Vec<String>, Fault> {
        let Datatype::Number(element) = &self.datatype else {
            return Err("its categories are not numbered".into());
        };
        let codes = element.decode(&self.bytes);
        let name = |at: usize| match codes.get(at) {
            code if code < 0.0 => Some(String::new()),
            code => names.get(code as usize).cloned(),
        };
        let texts: Option<Vec<String>> = (0..codes.len()).map(name).collect();
        texts.ok_or_else(|| format!("it has a number that none of its {} categories has", names.len()).into())
    }

    /// Names; numbers are written as such.
    fn texts(&self, file: &mut File) -> Result<Vec<String>, Fault> {
        match &self.datatype {
            Datatype::Number(element) => {
                let labels = element.decode(&self.bytes);
                Ok((0..labels.len()).map(|at| labels.get(at).to_string()).collect())
            }
            other => file.texts(other, &self.bytes),
        }
    }
}

/// Rows of a table, where it tells without being read.
pub(super) fn length(file: &mut File, table: &Object) -> Result<Option<u64>, Fault> {
    if table.is_array() {
        return Ok(file.array(table)?.shape.first().copied());
    }
    let name = index_name(file, table)?;
    match file.find(table, &name)? {
        Some(index) if index.is_array() => Ok(file.array(&index)?.shape.first().copied()),
        _ => Ok(None),
    }
}

/// The name of the column that names the rows.
fn index_name(file: &mut File, table: &Object) -> Result<String, Fault> {
    let name = match file.attribute(table, "_index")? {
        Some(Value::Texts(names)) => names.into_iter().next(),
        _ => None,
    };
    Ok(name.unwrap_or_else(|| "_index".into()))
}

/// The texts of a column of its own.
pub(super) fn names(file: &mut File, object: &Object) -> Result<Vec<String>, Fault> {
    Column::open(file, object)?.texts(file)
}

/// All elements of an array of one dimension.
fn all(file: &mut File, array: &Array) -> Result<Vec<u8>, Fault> {
    let &[n] = &array.shape[..] else { return Err("a column has two dimensions".into()) };
    file.rows(array, 0..n)
}
