#pragma once

#include <string>

#include "rehearsal/results.hpp"

namespace lockstep::cli {

/// What `run` says of variants of a training: lines that end with one, empty where nothing is said.
std::string what_would_help(const Advice& advice);
/// The largest batch that fits, or why it is unknown.
std::string largest_batch(const Advice& advice);
/// Where no batch fits: what is missing, and the strategies with which it fits.
std::string what_would_fit(const Advice& advice, Bytes capacity);

}  // namespace lockstep::cli
