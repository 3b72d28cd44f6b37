#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/site.hpp"
#include "model/expression/expression.hpp"
#include "model/user_program/group.hpp"

namespace lockstep {

struct GradientNode;
using GradientPointer = std::shared_ptr<const GradientNode>;

/// Where the backward of a value enters the network: d(value) / d(the loss of the forward), or
/// d(value) / d(each element of its output).
struct ForwardStart {
  double of_loss = 0;
  std::vector<double> of_output{};  ///< empty: the value does not depend on the output
};
struct BackwardStart : ForwardStart {
  bool has_last = true;                       ///< the value depends on the last forward
  std::map<int64_t, ForwardStart> earlier{};  ///< of the forwards before, by their numbers
};
/// The results of the last forward, and the numbers of earlier ones whose graph is still there.
struct ForwardResults {
  GradientPointer loss{};
  GradientPointer output{};
  std::set<int64_t> kept{};
  bool keeps_none = false;  ///< only the graph of the last forward is modelled
};

/// Where a value comes from, back to the loss of a forward: what autograd records, of the
/// statements of a program.
struct GradientNode {
  enum class Kind : uint8_t {
    forward,     ///< the loss of a forward, or its output
    expression,  ///< computed from other values
    gathered,    ///< all_gather with sync_grads of one value
    joined,      ///< hvd.allgather of one value
  };
  Kind kind = Kind::forward;
  int64_t number = 0;      ///< in the order of their making: a value comes from earlier ones only
  int64_t graph = 0;       ///< the batch that made it
  int64_t forward = 0;     ///< of `forward`: its number
  bool is_output = false;  ///< of `forward`: the output, else the loss
  bool reaches_earlier_graph = false;  ///< a backward would go through one that is gone
  bool through_parameters = false;     ///< computed from parameter(..) too
  int64_t elements = 1;                ///< of the value; a backward begins at one alone
  SiteId site{};
  Group group{};                                                 ///< of `gathered`
  DType dtype = DType::fp32;                                     ///< of `gathered`
  Expression expression{};                                       ///< of `expression`
  std::map<std::string, Value, std::less<>> values{};            ///< of its names, as they were
  std::map<std::string, GradientPointer, std::less<>> inputs{};  ///< by name; of `gathered` one, ""

  GradientNode() = default;
  GradientNode(const GradientNode&) = delete;
  GradientNode& operator=(const GradientNode&) = delete;
  /// Lets go of a long chain without recursion.
  ~GradientNode();
};

}  // namespace lockstep
