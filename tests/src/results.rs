//! The result files of a run as typed rows (design page, Result of a run). This module only reads;
//! the checker decides what is correct.

use std::path::Path;

use serde_json::Value;

use crate::csv::{self, CsvError};
use crate::fixed::{AMOUNT_SCALE, QTY_SCALE, mantissa};

const FILLS: &str = "time_ns,strategy,instrument,client_order_id,order_id,trade_id,side,\
position_side,price,qty,quote_qty,fee,fee_asset,maker,realized_pnl";
const ORDERS: &str = "time_ns,strategy,instrument,client_order_id,order_id,side,type,\
time_in_force,price,stop_price,qty,executed_qty,avg_price,status,reject_rule";
const EQUITY: &str = "time_ns,equity,cash,unrealized_pnl,drawdown";

/// Why result files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file cannot be opened.
    #[error("{file}: {error}")]
    File {
        /// The file name.
        file: &'static str,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The file does not have the expected columns.
    #[error("{file}: {error}")]
    Table {
        /// The file name.
        file: &'static str,
        /// The error of the CSV reader.
        error: CsvError,
    },
    /// A field does not have a valid value for its type.
    #[error("{file}, row {row}: {column} is {text:?}")]
    Field {
        /// The file.
        file: &'static str,
        /// The row, from 1.
        row: usize,
        /// The column.
        column: &'static str,
        /// The text of the field.
        text: String,
    },
    /// `summary.json` is not valid JSON.
    #[error("summary.json: {0}")]
    Summary(serde_json::Error),
}

/// A row of `fills.csv`. Prices and quantities have scale 12, amounts have scale 8.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after their columns")]
pub struct Fill {
    pub time_ns: i64,
    pub strategy: String,
    pub instrument: String,
    pub client_order_id: String,
    pub order_id: i64,
    pub trade_id: i64,
    pub buy: bool,
    pub position_side: String,
    pub price: i128,
    pub qty: i128,
    pub quote_qty: i128,
    pub fee: i128,
    pub fee_asset: String,
    pub maker: bool,
    pub realized_pnl: i128,
}

/// A row of `orders.csv`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after their columns")]
pub struct Order {
    pub time_ns: i64,
    pub strategy: String,
    pub instrument: String,
    pub client_order_id: String,
    pub order_id: Option<i64>,
    pub buy: bool,
    pub order_type: String,
    pub time_in_force: String,
    pub price: Option<i128>,
    pub qty: Option<i128>,
    pub executed_qty: i128,
    pub avg_price: Option<i128>,
    pub status: String,
    pub reject_rule: String,
}

/// A row of `equity.csv`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after their columns")]
pub struct Equity {
    pub time_ns: i64,
    pub equity: i128,
    pub cash: i128,
    pub unrealized_pnl: i128,
    pub drawdown: i128,
}

/// All files of a run.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "named after their files")]
pub struct Results {
    pub fills: Vec<Fill>,
    pub orders: Vec<Order>,
    pub equity: Vec<Equity>,
    pub summary: Value,
}

/// One row with its file and number, for error messages.
struct Row<'a> {
    file: &'static str,
    number: usize,
    columns: &'static str,
    fields: &'a [String],
}

impl Row<'_> {
    fn text(&self, column: &'static str) -> &str {
        let index = self.columns.split(',').position(|name| name == column);
        // The code below only asks for columns of the file.
        index.map_or("", |index| self.fields[index].as_str())
    }

    fn parse<T>(
        &self,
        column: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ResultsError> {
        let text = self.text(column);
        read(text).ok_or_else(|| ResultsError::Field {
            file: self.file,
            row: self.number,
            column,
            text: text.to_owned(),
        })
    }

    fn integer(&self, column: &'static str) -> Result<i64, ResultsError> {
        self.parse(column, |text| text.parse().ok())
    }

    fn amount(&self, column: &'static str) -> Result<i128, ResultsError> {
        self.parse(column, |text| mantissa(text, AMOUNT_SCALE))
    }

    fn qty(&self, column: &'static str) -> Result<i128, ResultsError> {
        self.parse(column, |text| mantissa(text, QTY_SCALE))
    }

    fn optional_qty(&self, column: &'static str) -> Result<Option<i128>, ResultsError> {
        self.optional(column, Self::qty)
    }

    fn optional<T>(
        &self,
        column: &'static str,
        read: impl FnOnce(&Self, &'static str) -> Result<T, ResultsError>,
    ) -> Result<Option<T>, ResultsError> {
        if self.text(column).is_empty() {
            return Ok(None);
        }
        read(self, column).map(Some)
    }

    fn buys(&self) -> Result<bool, ResultsError> {
        self.parse("side", |text| match text {
            "BUY" => Some(true),
            "SELL" => Some(false),
            _ => None,
        })
    }
}

fn fill(row: &Row<'_>) -> Result<Fill, ResultsError> {
    Ok(Fill {
        time_ns: row.integer("time_ns")?,
        strategy: row.text("strategy").to_owned(),
        instrument: row.text("instrument").to_owned(),
        client_order_id: row.text("client_order_id").to_owned(),
        order_id: row.integer("order_id")?,
        trade_id: row.integer("trade_id")?,
        buy: row.buys()?,
        position_side: row.text("position_side").to_owned(),
        price: row.qty("price")?,
        qty: row.qty("qty")?,
        quote_qty: row.amount("quote_qty")?,
        fee: row.amount("fee")?,
        fee_asset: row.text("fee_asset").to_owned(),
        maker: row.parse("maker", |text| text.parse().ok())?,
        realized_pnl: row.amount("realized_pnl")?,
    })
}

fn order(row: &Row<'_>) -> Result<Order, ResultsError> {
    Ok(Order {
        time_ns: row.integer("time_ns")?,
        strategy: row.text("strategy").to_owned(),
        instrument: row.text("instrument").to_owned(),
        client_order_id: row.text("client_order_id").to_owned(),
        order_id: row.optional("order_id", Row::integer)?,
        buy: row.buys()?,
        order_type: row.text("type").to_owned(),
        time_in_force: row.text("time_in_force").to_owned(),
        price: row.optional_qty("price")?,
        qty: row.optional_qty("qty")?,
        executed_qty: row.qty("executed_qty")?,
        avg_price: row.optional("avg_price", Row::amount)?,
        status: row.text("status").to_owned(),
        reject_rule: row.text("reject_rule").to_owned(),
    })
}

fn second(row: &Row<'_>) -> Result<Equity, ResultsError> {
    Ok(Equity {
        time_ns: row.integer("time_ns")?,
        equity: row.amount("equity")?,
        cash: row.amount("cash")?,
        unrealized_pnl: row.amount("unrealized_pnl")?,
        drawdown: row.amount("drawdown")?,
    })
}

fn table<T>(
    file: &'static str,
    columns: &'static str,
    text: &str,
    read: impl Fn(&Row<'_>) -> Result<T, ResultsError>,
) -> Result<Vec<T>, ResultsError> {
    let rows = csv::rows(text, columns).map_err(|error| ResultsError::Table { file, error })?;
    rows.iter()
        .zip(1..)
        .map(|(fields, number)| {
            read(&Row {
                file,
                number,
                columns,
                fields,
            })
        })
        .collect()
}

impl Results {
    /// Reads the texts of the four files.
    ///
    /// # Errors
    /// The first value that cannot be read, with its place.
    pub fn parse(
        fills: &str,
        orders: &str,
        equity: &str,
        summary: &str,
    ) -> Result<Self, ResultsError> {
        Ok(Self {
            fills: table("fills.csv", FILLS, fills, fill)?,
            orders: table("orders.csv", ORDERS, orders, order)?,
            equity: table("equity.csv", EQUITY, equity, second)?,
            summary: serde_json::from_str(summary).map_err(ResultsError::Summary)?,
        })
    }

    /// Reads the files of a folder.
    ///
    /// # Errors
    /// As [`Results::parse`], and if a file is missing.
    pub fn load(folder: &Path) -> Result<Self, ResultsError> {
        let read = |file: &'static str| {
            std::fs::read_to_string(folder.join(file))
                .map_err(|error| ResultsError::File { file, error })
        };
        Self::parse(
            &read("fills.csv")?,
            &read("orders.csv")?,
            &read("equity.csv")?,
            &read("summary.json")?,
        )
    }
}
