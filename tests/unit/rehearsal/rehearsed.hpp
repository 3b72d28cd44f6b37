#pragma once

#include <string>

#include "rehearsal/jobs.hpp"

namespace lockstep::test {

/// A scenario that is written out in a test, as a source that can be read again.
inline cli::CaseSource source_of_text(const std::string& text) {
  cli::CaseSource source;
  source.path = "scenario.yaml";
  source.reader = [text](const std::string&, size_t) -> std::variant<std::string, FileError> {
    return text;
  };
  return source;
}

/// All cases of a text, explored and judged as `test` does.
inline std::vector<cli::Job> rehearsed(const std::string& text,
                                       cli::Judges judges = cli::Judges::all,
                                       bool find_smallest = false) {
  cli::Collected collected = cli::collect(source_of_text(text));
  if (!collected.diagnostics.empty()) {
    throw std::invalid_argument(collected.diagnostics.front().message);
  }
  cli::RehearseRequest request;
  request.find_smallest = find_smallest;
  cli::rehearse_all(collected.jobs, request, judges, 2);
  return std::move(collected.jobs);
}

/// The first case of a text, as `run` predicts it; `explore`: with other schedules.
inline cli::Rehearsal predicted(const std::string& text, bool explore = false) {
  cli::Collected collected = cli::collect(source_of_text(text));
  if (!collected.diagnostics.empty()) {
    throw std::invalid_argument(collected.diagnostics.front().message);
  }
  cli::RehearseRequest request;
  request.explore = explore;
  cli::rehearse_all(collected.jobs, request, cli::Judges::all, 1);
  return std::move(collected.jobs.front().result);
}

/// A program of ranks on a network of 1 GB/s and 1 us.
inline std::string bare_text(int ranks, const std::string& statements,
                             const std::string& more = "") {
  return "version: 1\ncluster: {ranks: " + std::to_string(ranks) +
         ", network: {bandwidth: 1 GB/s, latency: 1 us}}\n" + more + "program:\n  main:\n" +
         statements;
}

inline const std::string guarded_statements = R"yaml(    - if: is_global_zero
      then:
        - all_gather: {elements: 16, as: gathered}
)yaml";

}  // namespace lockstep::test
