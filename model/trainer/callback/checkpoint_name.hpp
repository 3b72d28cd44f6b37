#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace lockstep {

/// The file name that ModelCheckpoint makes from its template, with ".ckpt" and without the folder
/// (model_checkpoint.py, format_checkpoint_name): "{epoch}-{val_loss:.2f}" with Python's format
/// specifications. A name that was not logged is 0.
struct CheckpointName {
  std::string pattern;             ///< empty: "{epoch}-{step}"
  bool insert_metric_name = true;  ///< "{epoch}" becomes "epoch=0"

  /// Throws std::invalid_argument where Python would raise.
  std::string of(int64_t epoch, int64_t step, const std::map<std::string, double>& metrics,
                 std::optional<int64_t> version = {}) const;
};

/// Bytes of a text and of a bool as Python's pickle (protocol 4) writes them, which is what
/// broadcast_object_list sends beside one int64 with this number.
int64_t pickled_bytes_of_text(int64_t length);
inline constexpr int64_t pickled_bytes_of_bool = 4;

}  // namespace lockstep
