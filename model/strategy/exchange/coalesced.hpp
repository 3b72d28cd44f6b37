#pragma once

#include <vector>

#include "model/program/rank.hpp"

namespace lockstep {

/// Tensors that travel as one, because one large message costs less than many small ones: torch's
/// take_tensors and flatten_dense_tensors (tensor_flatten.cpp).

/// Indices of the tensors of each chunk. A chunk holds one type and closes once it has at least
/// `limit`, so that it overshoots by up to a tensor.
std::vector<std::vector<size_t>> coalesce(const std::vector<Slice>& tensors, Bytes limit);

/// The chosen ones of `tensors`.
std::vector<Slice> chosen(const std::vector<Slice>& tensors, const std::vector<size_t>& indices);

/// Elements, bytes of all tensors together.
int64_t total_elements(const std::vector<Slice>& tensors);
Bytes total_bytes(const std::vector<Slice>& tensors);

/// Parts of `flat`, one for each tensor, in their order. `flat` holds their elements at least.
std::vector<Slice> parts_of(const Slice& flat, const std::vector<Slice>& tensors);

/// One kernel: from[i] to to[i].
Ticket copy_each(Rank& rank, const std::vector<Slice>& from, const std::vector<Slice>& to,
                 const ComputeOptions& options);

}  // namespace lockstep
