#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "io/report/journal_file.hpp"
#include "io/report/journal_record.hpp"
#include "io/report/report_error.hpp"

using namespace lockstep;

namespace {

void read_journal(std::span<const std::byte> file) {
  Journal journal(2, {});
  try {
    add_journal_file(file, 1, journal);
  } catch (const ReportError&) {
    return;
  }
  for (int32_t lane = 0; lane < journal.lanes(1); ++lane) {
    const LaneJournal& rows = std::as_const(journal).lane(1, lane);
    rows.for_each([&rows](const Row& row) {
      text_of(row);
      rows.lists_of(row);
      rows.completion(row.sequence);
    });
  }
}

// The same records, each with its right seal, behind a right head and before a free place.
std::vector<std::byte> sealed(std::span<const std::byte> bytes) {
  std::vector<JournalRecord> records(1);
  JournalHead head;
  head.rank = 1;
  head.world_size = 2;
  records.front().kind = JournalRecord::head;
  records.front().hold(head);
  for (; bytes.size() >= sizeof(JournalRecord); bytes = bytes.subspan(sizeof(JournalRecord))) {
    JournalRecord record;
    std::memcpy(&record, bytes.data(), sizeof record);
    if (record.kind != JournalRecord::head) {
      records.push_back(record);
    }
  }
  for (uint64_t number = 0; number < records.size(); ++number) {
    records[number].seal = records[number].seal_for(number);
  }
  records.emplace_back();
  const auto all = std::as_bytes(std::span(records));
  return {all.begin(), all.end()};
}

}  // namespace

/// Any bytes as the journal of a rank, and as its records with checksums that are right: reading
/// ends with rows, or with a ReportError.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read_journal(bytes);
  read_journal(sealed(bytes));
  return 0;
}
