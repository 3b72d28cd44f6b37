#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "model/program/journal.hpp"

namespace lockstep {

/// How often one rank called an operation on a group, and with how much payload in all. The payload
/// is that of Op::bytes: of all_gather and gather the rank's own part, else all of it. Copies
/// between GPUs of the rank count too.
struct TransferCount {
  OpKind kind = OpKind::event;
  std::string group;  ///< "world", "ranks 0-3", or "own GPUs" of copies
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t members = 0;  ///< of the group; 0 of copies
  bool operator==(const TransferCount&) const = default;
};

/// Rows of the main lane that count. Of other lanes counts what they submit meanwhile: after the
/// last operation before these rows, and up to the last one of them.
struct RowRange {
  int64_t begin = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
};

/// Rows of a lane that count so many times more.
struct RowsAgain {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t times = 0;
  int32_t lane = 0;
};

/// Whether data leave a GPU by this operation: to another rank, or to another GPU of this one.
bool moves_between_gpus(const Row& row);

/// The communication of one rank within these rows, and what else counts, by kind and group.
std::vector<TransferCount> transfers_of(const Journal& journal, int32_t rank,
                                        const RowRange& rows = {},
                                        std::span<const RowsAgain> again = {});

/// What the rank that runs for this one counted, with the groups as this one calls them, and in the
/// order that transfers_of gives them.
std::vector<TransferCount> counts_for_rank(const Journal& journal,
                                           std::vector<TransferCount> counts, int32_t rank);

/// What the rank sends for them where collectives go round a ring of W: 2 (W-1)/W of an all_reduce,
/// (W-1)/W of a reduce_scatter or an all_to_all, W-1 times its part of an all_gather. A broadcast
/// and a reduction to one rank are passed on once; who receives a message sends nothing.
int64_t bytes_sent(const TransferCount& count);

/// The counts of one step out of `steps` equal ones; empty when the counts cannot be divided, so
/// that steps were not equal.
std::vector<TransferCount> transfers_per_step(std::vector<TransferCount> counts, int64_t steps);

/// A sentence for each kind and group that was not as expected; empty when all is.
std::vector<std::string> transfer_differences(const std::vector<TransferCount>& expected,
                                              const std::vector<TransferCount>& actual);

}  // namespace lockstep
