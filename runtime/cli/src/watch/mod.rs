//! `windvane watch`: prints user streams and market data, one event per line.

mod line;
mod stream_lines;

use clap::Args;
use tokio::sync::mpsc;
use windvane_client::Client;
use windvane_client::streams::StreamStartError;
use windvane_protocol::market_stream::Topic;
use windvane_protocol::route::{self, Route, Surface};
use windvane_protocol::wire::Parameters;

use super::Failure;
use super::call::{is_signed, learn_time};
use super::place::{Place, SurfaceWord};
use super::printing::{has_reader_for, note};
use line::{Line, LineContent};
use windvane_config::Config;
use windvane_live::connection::{self, ConnectionError, Needs, Part};

/// How many lines may wait for the terminal.
const LINES: usize = 1024;

#[derive(Debug, Args)]
pub(super) struct Watch {
    /// `user` for the user stream, or a symbol such as BTCUSDT or futures:BTCUSDT; can be several
    #[arg(required = true, value_name = "user|SYMBOL")]
    targets: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Surface to watch; without it, every surface with a WebSocket address
    #[arg(long, value_enum)]
    surface: Option<SurfaceWord>,
    /// Public streams of each symbol, such as tradepro,bookTicker,depth@100ms
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    streams: Vec<String>,
    /// Stop after this number of events
    #[arg(long, value_name = "NUMBER")]
    events: Option<u64>,
    /// Print one JSON object per line, also for notices
    #[arg(long)]
    json: bool,
}

/// A stream to start.
#[derive(Debug)]
enum Wanted {
    User(Surface),
    Market(Surface, Vec<Topic>),
}

impl From<StreamStartError> for Failure {
    fn from(error: StreamStartError) -> Self {
        Self::usage(error)
    }
}

impl Watch {
    pub(super) fn run(self) -> Result<(), Failure> {
        let is_user = self.targets.iter().any(|target| target == "user");
        let config = self.place.config()?;
        windvane_config::take_descriptors(&config);
        let settings = self.place.settings_of(&config, |settings| {
            // A user stream calls only the listen key routes. They need the API key in v1 and the
            // agent's key in v3, but no wallet key.
            let v3 = [settings.spot_api, settings.futures_api].contains(&windvane_client::Api::V3);
            let v1 = [settings.spot_api, settings.futures_api].contains(&windvane_client::Api::V1);
            Ok(Needs {
                api_key: is_user && v1,
                signer: is_user && v3,
                ..Needs::default()
            })
        })?;
        let client = Client::new(settings).map_err(Failure::failed)?;
        let wanted = self.wanted(&config, &client)?;
        super::block_on(async {
            let (sender, lines) = mpsc::channel(LINES);
            for one in wanted {
                match one {
                    Wanted::User(surface) => {
                        request_key(&client, surface).await?;
                        let stream = client.user_stream(surface)?;
                        tokio::spawn(stream_lines::user(surface, stream, sender.clone()));
                    }
                    Wanted::Market(surface, topics) => {
                        let feed = client.market_feed(surface, &topics)?;
                        tokio::spawn(stream_lines::market(surface, topics, feed, sender.clone()));
                    }
                }
            }
            drop(sender);
            tokio::select! {
                ended = self.print(lines) => ended,
                stopped = super::stop_signal() => stopped.map_err(Failure::failed),
            }
        })?
    }

    fn wanted(&self, config: &Config, client: &Client) -> Result<Vec<Wanted>, Failure> {
        let mut wanted = Vec::new();
        let addresses = &client.settings().addresses;
        let required = |surface, part| {
            // The client's own error names a surface without streams.
            match surface {
                Surface::Spot | Surface::Futures => {
                    connection::require(config, addresses, surface, part)
                        .map_err(ConnectionError::from)
                }
                Surface::Chain | Surface::Rpc => Ok(()),
            }
        };
        for surface in self.surfaces(client)? {
            required(surface, Part::Ws)?;
            if self.targets.iter().any(|target| target == "user") {
                required(surface, Part::Rest)?;
                can_request_key(client, surface)?;
                wanted.push(Wanted::User(surface));
            }
            let topics = self.topics(surface)?;
            if !topics.is_empty() {
                wanted.push(Wanted::Market(surface, topics));
            }
        }
        if wanted.is_empty() {
            return Err(Failure::Usage(
                "no target is on a watched surface; see --surface".to_owned(),
            ));
        }
        Ok(wanted)
    }

    fn surfaces(&self, client: &Client) -> Result<Vec<Surface>, Failure> {
        if let Some(word) = self.surface {
            return Ok(vec![word.into()]);
        }
        let addresses = &client.settings().addresses;
        let surfaces: Vec<Surface> = [Surface::Spot, Surface::Futures]
            .into_iter()
            .filter(|surface| addresses.ws_of(*surface).is_some())
            .collect();
        if surfaces.is_empty() {
            return Err(Failure::Usage(
                "no WebSocket address is configured; set venue.spot.ws or venue.futures.ws"
                    .to_owned(),
            ));
        }
        Ok(surfaces)
    }

    /// The topics of the symbols on this surface.
    fn topics(&self, surface: Surface) -> Result<Vec<Topic>, Failure> {
        let mut topics = Vec::new();
        for target in self.targets.iter().filter(|target| *target != "user") {
            let symbol = match target.split_once(':') {
                None => target,
                Some((word, symbol)) if word == surface.as_str() => symbol,
                Some(("spot" | "futures", _)) => continue,
                Some((word, _)) => {
                    return Err(Failure::Usage(format!(
                        "{target}: {word} is not a surface with streams; write spot: or futures:"
                    )));
                }
            };
            let symbol = symbol.to_ascii_lowercase();
            for stream in self.stream_names(surface) {
                let topic = format!("{symbol}@{stream}").parse();
                topics.push(topic.map_err(Failure::usage)?);
            }
        }
        Ok(topics)
    }

    fn stream_names(&self, surface: Surface) -> Vec<&str> {
        if !self.streams.is_empty() {
            return self.streams.iter().map(String::as_str).collect();
        }
        match surface {
            Surface::Futures => vec!["tradepro", "bookTicker", "markPrice"],
            _ => vec!["tradepro", "bookTicker"],
        }
    }

    /// Prints lines until enough events arrived, the reader closed the pipe, or all streams ended.
    async fn print(&self, mut lines: mpsc::Receiver<Line>) -> Result<(), Failure> {
        let mut left = self.events.unwrap_or(u64::MAX);
        while left > 0 {
            let Some(line) = lines.recv().await else {
                let nothing = "nothing is left to watch: every stream has ended, see above";
                return Err(Failure::Failed(nothing.to_owned()));
            };
            match &line.content {
                LineContent::Event(_) => left -= 1,
                LineContent::Notice(_) => {}
                LineContent::Final(_) => return Err(Failure::Failed(line.text())),
            }
            let is_read = match (self.json, &line.content) {
                (true, _) => has_reader_for(&line.json())?,
                (false, LineContent::Event(_)) => has_reader_for(&line.text())?,
                (false, _) => {
                    eprintln!("{}", line.text());
                    true
                }
            };
            if !is_read {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Fails early: a stream that can never get a listen key would retry forever.
fn can_request_key(client: &Client, surface: Surface) -> Result<(), Failure> {
    let ready = client.prepare(key_route(surface)?, None, &Parameters::new(), None);
    ready.map(|_| ()).map_err(Failure::usage)
}

fn key_route(surface: Surface) -> Result<&'static Route, Failure> {
    route::named(&format!("{surface}.create_listen_key"))
        .ok_or_else(|| Failure::Usage(format!("{surface} has no user stream; use spot or futures")))
}

/// Requests the listen key once before the stream does; the venue returns the same key to both. A
/// permanent refusal ends the command; other failures are printed.
async fn request_key(client: &Client, surface: Surface) -> Result<(), Failure> {
    let route = key_route(surface)?;
    let listing = route.listing(client.settings().version(route));
    if listing.is_some_and(|listing| is_signed(listing.scheme)) {
        learn_time(client, surface).await;
    }
    let answer = client.call(route, None, &Parameters::new()).await;
    match answer.into_result() {
        Ok(_) => Ok(()),
        Err(not_done) if stream_lines::is_final(&not_done) => Err(Failure::Failed(format!(
            "{surface} user: no listen key: {not_done}"
        ))),
        Err(not_done) => {
            note(format!("{surface} user: no listen key yet: {not_done}"));
            Ok(())
        }
    }
}
