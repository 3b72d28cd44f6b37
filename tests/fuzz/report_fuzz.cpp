#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

#include "io/report/rank_report.hpp"
#include "io/report/report_envelope.hpp"

using namespace lockstep;

namespace {

// Of two ranks, as the seeds are.
void read_report(std::span<const uint8_t> file) {
  RunResult result;
  result.ends.resize(2);
  result.memory.resize(2);
  JournalOptions options;
  options.lists = true;
  result.journal = std::make_unique<Journal>(2, options);
  RankLog log;
  try {
    add_rank_report(file, 1, result, log);
  } catch (const ReportError&) {
    return;
  }
  for (int32_t lane = 0; lane < result.journal->lanes(1); ++lane) {
    const LaneJournal& rows = std::as_const(*result.journal).lane(1, lane);
    rows.for_each([&rows](const Row& row) {
      text_of(row);
      rows.lists_of(row);
      rows.completion(row.sequence);
    });
  }
}

}  // namespace

/// Any bytes as the file of a report, and as the content of one whose checksums are right, which
/// gets behind them: reading ends with a result, or with a ReportError.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(data, size);
  read_report(bytes);
  read_report(sealed_report(bytes));
  try {
    read_report(sealed_report(content_of_report(bytes)));  // a seed is a file: so is its content
  } catch (const ReportError&) {
  }
  return 0;
}
