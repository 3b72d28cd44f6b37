#include "model/trainer/data/data_feed.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {

namespace {

// Of `work`, by so many processes side by side.
Time time_of(Time work, int64_t processes, double cores) {
  if (static_cast<double>(processes) <= cores) {
    return work / processes;
  }
  return Time(std::llround(static_cast<double>(work.count()) / cores));
}

}  // namespace

int64_t DataFeed::ahead() const {
  return loader_.sample_time == Time{} ? 0 : loader_.workers * loader_.prefetch_factor;
}

Program DataFeed::next(int64_t samples, int64_t number, int64_t batches) {
  if (loader_.sample_time == Time{}) {
    co_return;
  }
  if (loader_.workers == 0) {
    rank_.host(time_of(loader_.sample_time * samples, 1, loader_.cores), data_loading_site);
    co_return;
  }
  // Workers side by side finish batches at the rate of one worker times their number.
  const Time one = time_of(loader_.sample_time * batch_size_, loader_.workers, loader_.cores);
  for (; ordered_ < batches && ordered_ < number + ahead(); ++ordered_) {
    prepared_.push_back(rank_.compute(one, {stream(queue::data), {}, data_loading_site}));
  }
  const Ticket ready = prepared_.front();
  prepared_.pop_front();
  co_await rank_.settle(ready);
}

}  // namespace lockstep
