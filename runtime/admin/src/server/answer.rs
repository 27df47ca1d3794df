//! The format of responses: JSON, and errors with advice.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{StatusCode, header};
use serde::Serialize;

use crate::steer::Refused;

/// The value of the `Server` header. The client checks it before it sends its token.
pub(crate) const SERVER: &str = "windvane";

/// A value as JSON.
pub(super) fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => (status, [(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => {
            tracing::error!(%error, "could not encode a response of the admin server");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// An error response with advice.
pub(super) fn refuse(status: StatusCode, error: &str, what_to_do: &str) -> Response {
    let refused = Refused {
        error: error.to_owned(),
        what_to_do: what_to_do.to_owned(),
    };
    json(status, &refused)
}

/// Adds the headers of every response.
pub(super) fn with_headers(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static(SERVER));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}
