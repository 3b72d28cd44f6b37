#pragma once

#include <algorithm>
#include <string_view>

namespace lockstep {

/// Names that every program has.
inline constexpr std::string_view names_of_ranks[] = {"rank", "world_size", "local_rank",
                                                      "node_rank", "is_global_zero"};
/// Names that a trainer adds, beside the columns of a batch.
inline constexpr std::string_view names_of_trainers[] = {
    "is_last_batch",    "global_step", "epoch",          "batch_idx",       "batch_size",
    "num_batches",      "output",      "dataloader_idx", "sanity_checking", "outputs",
    "callback_metrics", "loss_scale"};

/// A column of such a name could never be read: the name has a different meaning in programs.
inline bool is_known_name(std::string_view name) {
  return name == "sample" || name == "self" || std::ranges::count(names_of_ranks, name) > 0 ||
         std::ranges::count(names_of_trainers, name) > 0;
}

}  // namespace lockstep
