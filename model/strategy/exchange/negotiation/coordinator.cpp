#include "model/strategy/exchange/negotiation/coordinator.hpp"

#include <algorithm>

namespace lockstep {

void Coordinator::add(int32_t rank, const TensorRequest& request) {
  if (request.name.kind == RequestKind::join) {
    joined_.insert(rank);
    for (Asked& asked : asked_) {  // it may have been the last that they waited for
      if (!asked.is_ready && is_complete(asked)) {
        asked.is_ready = true;
        ready_.push_back(asked.first.name);
      }
    }
    return;
  }
  auto known = std::ranges::find_if(
      asked_, [&](const Asked& asked) { return asked.first.name == request.name; });
  if (known == asked_.end()) {
    known = asked_.insert(known, Asked{request, {}, true, false});
  }
  known->elements[rank] = request.elements;
  known->agree = known->agree && fit_together(known->first, request);
  if (!known->is_ready && is_complete(*known)) {
    known->is_ready = true;
    ready_.push_back(request.name);
  }
}

bool Coordinator::is_complete(const Asked& asked) const {
  const auto only_joined =
      std::ranges::count_if(joined_, [&](int32_t rank) { return !asked.elements.contains(rank); });
  return std::ssize(asked.elements) + only_joined == ranks_;
}

TensorResponse Coordinator::response_to(const Asked& asked) const {
  using Error = TensorResponse::Error;
  const RequestKind kind = asked.first.name.kind;
  const bool takes_zeros = kind == RequestKind::all_reduce || kind == RequestKind::barrier;
  const Error error = !asked.agree                       ? Error::mismatch
                      : !joined_.empty() && !takes_zeros ? Error::not_with_join
                                                         : Error::none;
  TensorResponse response{asked.first, error};
  if (kind == RequestKind::all_gather && error == Error::none) {
    for (const auto& [rank, elements] : asked.elements) {
      response.parts.push_back(elements);
    }
  }
  return response;
}

std::vector<TensorResponse> Coordinator::take_ready() {
  std::vector<TensorResponse> responses;
  for (const TensorName& name : ready_) {
    const auto asked =
        std::ranges::find_if(asked_, [&](const Asked& each) { return each.first.name == name; });
    responses.push_back(response_to(*asked));
    asked_.erase(asked);
  }
  ready_.clear();
  if (std::ssize(joined_) == ranks_) {
    joined_.clear();
    TensorResponse& join = responses.emplace_back();
    join.request.name = {RequestKind::join, NameSpace::unnamed, 0};
  }
  return responses;
}

}  // namespace lockstep
