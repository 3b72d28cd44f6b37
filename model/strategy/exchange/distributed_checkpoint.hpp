#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/strategy/checkpoint.hpp"

namespace lockstep {

/// Which rank writes what of a model that torch.distributed.checkpoint saves in parts: pure
/// arithmetic. Tensors are cut by their first dimension over neighbouring ranks. Of a part that
/// several ranks hold, the one writes it that has least to write so far, where a part counts as
/// its whole tensor (dedup_save_plans).
class CheckpointParts {
 public:
  /// Rank r holds parts r mod `shards`.
  CheckpointParts(int32_t ranks, int32_t shards);
  /// In the order of the state_dict: a parameter, or what an optimizer keeps of it. `name_length`:
  /// characters of the parameter's name.
  void add_parameter(int64_t rows, Bytes row_bytes, size_t name_length);
  void add_state(int64_t rows, Bytes row_bytes, size_t name_length);
  /// One number that all ranks hold: Adam's step.
  void add_counter(size_t name_length);
  /// Options of an optimizer, which all ranks hold.
  void add_options(int64_t count);
  void assign();

  Bytes bytes_of(int32_t rank) const { return ranks_[static_cast<size_t>(rank)].bytes; }
  std::shared_ptr<const std::vector<Bytes>> bytes_by_rank() const;

  // Pickled objects, about as long as PyTorch 2.11's, of the rank whose object is the longest.
  Bytes local_plan() const;
  Bytes global_plan() const;
  Bytes write_results() const;
  Bytes metadata() const;

 private:
  enum class Kind : uint8_t { parameter, state, counter, option };
  struct Item {
    Kind kind = Kind::parameter;
    int64_t rows = 1;
    Bytes row_bytes{};
    int64_t name_length = 0;
    bool is_cut() const { return kind == Kind::parameter || kind == Kind::state; }
    int64_t plan_entry() const;
  };
  struct Written {
    int64_t planned = 0;  ///< by which the planner compares ranks
    Bytes bytes{};
    int64_t plan_entries = 0;    ///< pickled bytes
    int64_t result_entries = 0;  ///< pickled bytes
  };
  Bytes part_bytes(const Item& item, int32_t shard) const;
  Written& least_loaded(int32_t first, int32_t step);

  int32_t shards_;
  std::vector<Item> items_;
  std::vector<Written> ranks_;
  int64_t parts_ = 0;
};

/// torch.distributed.checkpoint.save: rank 0 makes one plan of all, every rank writes its parts,
/// and rank 0 writes down who has written what. Returns the bytes of this rank.
Task<Bytes> save_parts(Rank& rank, const CheckpointParts& parts, CheckpointRequest request,
                       SiteId site);

}  // namespace lockstep
