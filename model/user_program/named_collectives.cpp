#include "model/user_program/named_collectives.hpp"

#include <exception>
#include <utility>

namespace lockstep {

NamedCollectives::~NamedCollectives() {
  if (std::uncaught_exceptions() > 0 && negotiator_ && negotiator_->is_running()) {
    negotiator_->abandon(rank_);
  }
}

Program NamedCollectives::open(const NegotiationOptions& options) {
  negotiator_ = std::make_shared<Negotiator>(options);
  co_await negotiator_->start(rank_);
}

Program NamedCollectives::close() {
  if (negotiator_) {
    co_await negotiator_->stop(rank_);
  }
}

bool NamedCollectives::is_under_way(const TensorName& name) const { return named_.contains(name); }

int64_t NamedCollectives::submit(const TensorRequest& request, InFlight sent, Ticket ready) {
  const bool is_named = request.name.space == NameSpace::statement;
  const Slice data = sent.data ? sent.data->slice : Slice{};
  const int64_t handle = is_named ? negotiator_->submit(rank_, request, data, {}, ready, sent.name)
                                  : negotiator_->submit_unnamed(rank_, request, data, {}, ready);
  if (is_named) {
    named_[request.name] = handle;
  }
  in_flight_[handle] = std::move(sent);
  return handle;
}

Task<NamedCollectives::Arrived> NamedCollectives::wait(int64_t handle, SiteId site) {
  Arrived arrived{std::move(in_flight_.at(handle)), {}};
  in_flight_.erase(handle);
  std::erase_if(named_, [handle](const auto& named) { return named.second == handle; });
  arrived.whole = co_await negotiator_->wait(rank_, handle, site);
  co_return arrived;
}

}  // namespace lockstep
