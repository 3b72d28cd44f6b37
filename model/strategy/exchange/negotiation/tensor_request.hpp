#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/values.hpp"

namespace lockstep {

/// What a rank may ask Horovod for. Names of different kinds never meet: Horovod puts the kind in
/// front of them.
enum class RequestKind : uint8_t { all_reduce, all_gather, broadcast, join, barrier };

/// What stands in front of names of this kind: "allreduce" (horovod/torch/mpi_ops_v2.cc).
std::string_view prefix_of(RequestKind kind);

/// Where the number of a tensor comes from. Only what is named by the user's program means the
/// same tensor on every rank; `unnamed` counts the calls of a rank, as Horovod's handles do.
/// `statement`: the number of a name that a statement of the scenario gives (number_of_name).
enum class NameSpace : uint8_t {
  parameter,
  in_group,
  buffer,
  optimizer_state,
  object,
  unnamed,
  statement
};

/// The name of a tensor, as all ranks write it.
struct TensorName {
  RequestKind kind = RequestKind::all_reduce;
  NameSpace space = NameSpace::parameter;
  int64_t number = 0;
  auto operator<=>(const TensorName&) const = default;
};

/// What one rank says of a tensor that it has ready. All ranks must say the same of one name.
struct TensorRequest {
  TensorName name;
  DType dtype = DType::fp32;
  int64_t elements = 0;  ///< of all_gather: of this rank's part
  Reduction reduction = Reduction::sum;
  int32_t root = 0;
  /// Alike for tensors of one shape (number_of_shape); of all_gather: without the first dimension.
  int64_t shape = 0;
  bool operator==(const TensorRequest&) const = default;
};

/// What the coordinator answers: all ranks do this now, or raise.
struct TensorResponse {
  TensorRequest request;
  enum class Error : uint8_t { none, mismatch, not_with_join, shut_down, damaged };
  Error error = Error::none;
  /// Of all_gather: elements of each member; of a mismatch: who asked for what (mismatch.hpp).
  std::vector<int64_t> parts{};
  bool operator==(const TensorResponse&) const = default;
};

/// Whether a rank may ask for `one` where another asks for `other`: the first dimension of what is
/// gathered may differ.
bool fit_together(const TensorRequest& one, const TensorRequest& other);

/// A number that means the name, or the shape, on every rank.
int64_t number_of_name(std::string_view name);
int64_t number_of_shape(std::span<const int64_t> shape);

/// Ranks exchange numbers; these are as many for each, and those of `parts` follow.
inline constexpr int64_t numbers_of_response = 10;

/// All that they say.
void add_numbers(const TensorRequest& request, std::vector<int64_t>& numbers);
void add_numbers(const TensorResponse& response, std::vector<int64_t>& numbers);

/// The lists as numbers, of which there are at least `room`, and `count` of them back from `first`
/// on: nothing where the numbers are no such list.
Values encoded(const std::vector<TensorResponse>& responses, int64_t room);
std::optional<std::vector<TensorResponse>> decoded(const Values& numbers, int64_t first,
                                                   int64_t count);
/// So many of them.
int64_t count_numbers(const std::vector<TensorResponse>& responses);

}  // namespace lockstep
