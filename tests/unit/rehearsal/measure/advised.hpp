#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::test {

/// What `run` does with the only case of a text.
inline cli::Rehearsal advised(const std::string& text) {
  cli::Collected collected = cli::collect(source_of_text(text));
  REQUIRE(collected.diagnostics.empty());
  cli::RehearseRequest request;
  request.explore = false;
  request.advise = true;
  cli::rehearse_all(collected.jobs, request, cli::Judges::quantities, 1);
  return std::move(collected.jobs.front().result);
}

}  // namespace lockstep::test
