#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// How the ranks of a tensor-parallel group hold an activation of [positions, features].
enum class TensorLayout : uint8_t {
  replicated,  ///< Replicate(): each has all of it
  sequence,    ///< Shard(1): each has some positions
  features,    ///< Shard(-1): each has some features
};
std::string_view name_of(TensorLayout layout);

/// What parallelize_module does to one module: a class of torch.distributed.tensor.parallel.
struct ParallelStyle {
  enum class Kind : uint8_t {
    column,    ///< ColwiseParallel: a part of the output's features each
    row,       ///< RowwiseParallel: a part of the input's features each, and terms of the output
    sequence,  ///< SequenceParallel: whole weights, and some positions each
    input,     ///< PrepareModuleInput: what the module gets is brought to another layout
    experts,   ///< ExpertParallel of torchtitan: some experts each, to which tokens travel
  };
  Kind kind = Kind::column;
  TensorLayout input = TensorLayout::replicated;  ///< in which its input arrives
  TensorLayout output = TensorLayout::features;   ///< in which its output leaves; of `input`: as
                                                  ///< which the module gets what arrives
  /// Whether what leaves (of `input`: what the module gets) is a plain tensor again: autograd of
  /// torch then takes its gradient for one in the same layout.
  bool local_output = true;
};

/// A style as Python writes it, "RowwiseParallel(output_layouts=Shard(1))", or by its short name
/// colwise, rowwise or sequence.
struct ReadStyle {
  std::optional<ParallelStyle> style{};
  std::string why_not{};  ///< where there is none
  bool is_unmodelled = false;
};
ReadStyle read_parallel_style(std::string_view text);

/// The argument `parallelize_plan`: names of modules, in which `*` and `?` stand for characters of
/// one level, and what is done to each.
using ParallelPlan = std::vector<std::pair<std::string, ParallelStyle>>;

/// Whether the name of a module fits a name of the plan, level by level.
bool fits_pattern(std::string_view pattern, std::string_view module);

}  // namespace lockstep
