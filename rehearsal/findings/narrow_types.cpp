#include "rehearsal/findings/narrow_types.hpp"

#include <algorithm>

namespace lockstep::cli {

namespace {

bool is_narrow(DType dtype) { return is_floating(dtype) && size_of(dtype) == 2; }

bool updates_wide_parameters(const OneRun& run) {
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  return std::ranges::any_of(ranks, [](const RankLog& rank) {
    return std::ranges::any_of(rank.final_parameters,
                               [](const Values& each) { return size_of(each.dtype()) > 2; });
  });
}

// The coarser one, where there are two.
void take(std::optional<NarrowType>& found, NarrowType other) {
  const bool in_layers = other.in_layers || (found && found->in_layers);
  const bool coarser = !found || other.dtype == DType::bf16;
  found = {coarser ? other.dtype : found->dtype, in_layers};
}

}  // namespace

std::optional<NarrowType> narrow_beside_parameters(const OneRun& run) {
  std::optional<NarrowType> found;
  if (run.result.journal == nullptr || !updates_wide_parameters(run)) {
    return found;
  }
  const Journal& journal = *run.result.journal;
  for (int32_t lane = 0; journal.ranks() > 0 && lane < journal.lanes(0); ++lane) {
    journal.lane(0, lane).for_each([&found](const Row& row) {
      if (row.row != RowKind::op || !is_narrow(row.dtype)) {
        return;
      }
      const bool is_layer = row.kind == OpKind::compute && (row.kernel == Kernel::layer_forward ||
                                                            row.kernel == Kernel::layer_backward);
      if (is_layer || is_collective(row.kind)) {
        take(found, {row.dtype, is_layer});
      }
    });
  }
  return found;
}

}  // namespace lockstep::cli
