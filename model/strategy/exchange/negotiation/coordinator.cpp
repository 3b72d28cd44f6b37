#include "model/strategy/exchange/negotiation/coordinator.hpp"

#include <algorithm>

#include "model/strategy/exchange/negotiation/mismatch.hpp"

namespace lockstep {

void Coordinator::add(int32_t rank, const TensorRequest& request) {
  if (request.name.kind == RequestKind::join) {
    joined_.insert(rank);
    for (auto& [number, asked] : asked_) {  // it may have been the last that they waited for
      if (!asked.is_ready && is_complete(asked)) {
        asked.is_ready = true;
        ready_.push_back(asked.first.name);
      }
    }
    return;
  }
  const auto [known, is_new] = number_.try_emplace(request.name, next_);
  if (is_new) {
    asked_.emplace(next_++, Asked{request, {}, {}, false});
  }
  Asked& asked = asked_.at(known->second);
  asked.elements[rank] = request.elements;
  if (!fit_together(asked.first, request)) {
    asked.otherwise[rank] = request;
  }
  if (!asked.is_ready && is_complete(asked)) {
    asked.is_ready = true;
    ready_.push_back(request.name);
  }
}

bool Coordinator::is_complete(const Asked& asked) const {
  const auto only_joined =
      std::ranges::count_if(joined_, [&](int32_t rank) { return !asked.elements.contains(rank); });
  return std::ssize(asked.elements) + only_joined == ranks_;
}

std::map<int32_t, TensorRequest> Coordinator::requests_of(const Asked& asked) {
  std::map<int32_t, TensorRequest> requests = asked.otherwise;
  for (const auto& [rank, elements] : asked.elements) {
    requests.try_emplace(rank, asked.first);
  }
  return requests;
}

TensorResponse Coordinator::response_to(const Asked& asked) const {
  using Error = TensorResponse::Error;
  const RequestKind kind = asked.first.name.kind;
  const bool takes_zeros = kind == RequestKind::all_reduce || kind == RequestKind::barrier;
  const Error error = !asked.otherwise.empty()           ? Error::mismatch
                      : !joined_.empty() && !takes_zeros ? Error::not_with_join
                                                         : Error::none;
  TensorResponse response{asked.first, error};
  if (kind == RequestKind::all_gather && error == Error::none) {
    for (const auto& [rank, elements] : asked.elements) {
      response.parts.push_back(elements);
    }
  }
  if (error == Error::mismatch) {
    response.parts = numbers_of_mismatch(requests_of(asked));
  }
  return response;
}

std::vector<TensorResponse> Coordinator::take_ready() {
  std::vector<TensorResponse> responses;
  for (const TensorName& name : ready_) {
    const auto number = number_.find(name);
    const auto asked = asked_.find(number->second);
    responses.push_back(response_to(asked->second));
    asked_.erase(asked);
    number_.erase(number);
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
