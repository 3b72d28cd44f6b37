#include "tests/property/clean_rehearsal.hpp"

#include <rapidcheck.h>

#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::test {

cli::Rehearsal clean_rehearsal(const std::string& text, cli::World world) {
  cli::Collected collected = cli::collect(source_of_text(text));
  for (const Diagnostic& diagnostic : collected.diagnostics) {
    RC_LOG() << diagnostic.message << "\n";
  }
  RC_ASSERT(collected.diagnostics.empty());
  cli::RehearseRequest request;
  request.world = world;
  cli::rehearse_all(collected.jobs, request, cli::Judges::all, 2);
  RC_ASSERT(collected.jobs.size() == 1U);
  cli::Rehearsal rehearsal = std::move(collected.jobs.front().result);
  for (const Problem& problem : rehearsal.problems) {
    RC_LOG() << problem.message << "\n";
  }
  RC_ASSERT(rehearsal.ran());
  for (const Finding& finding : rehearsal.findings) {
    RC_LOG() << finding.code << " " << finding.title << "\n";
  }
  RC_ASSERT(rehearsal.findings.empty());
  return rehearsal;
}

}  // namespace lockstep::test
