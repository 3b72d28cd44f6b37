#include "rehearsal/measure/cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/cluster/list_prices.hpp"
#include "model/cluster/presets.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr double seconds_per_hour = 3600;
constexpr double million = 1e6;
constexpr double billion = 1e9;

/// What an hour of one unit costs.
struct Price {
  double amount = 0;
  std::string currency;
  bool by_gpu = false;
  std::string source;
};

// A preset whose GPUs were replaced is no longer what its maker sells.
std::optional<Price> price_of_preset(const Rehearsal& rehearsal) {
  const std::optional<ClusterSpec>& spec = rehearsal.scenario->cluster;
  if (!spec || !spec->preset) {
    return std::nullopt;
  }
  const std::optional<ListPrice> listed = list_price_of(spec->preset->value);
  const std::optional<Cluster> known = cluster_preset(spec->preset->value);
  const NodeModel& node = rehearsal.run.machine.cluster.node;
  if (!listed || !known || known->node.devices != node.devices ||
      known->node.device.name != node.device.name) {
    return std::nullopt;
  }
  return Price{
      listed->usd_per_node_hour, "USD", false,
      fmt::format("list price of {} ({}; {})", listed->cluster, listed->terms, listed->source)};
}

std::optional<Price> price_of(const Rehearsal& rehearsal) {
  const std::optional<ClusterSpec>& spec = rehearsal.scenario->cluster;
  if (!spec || !spec->price || !spec->price->amount) {
    return price_of_preset(rehearsal);
  }
  const PriceSpec& price = *spec->price;
  return Price{price.amount->value, value_or(price.currency, std::string("USD")),
               value_or(price.per, PriceUnit::node_hour) == PriceUnit::gpu_hour,
               "price of the scenario"};
}

// Spare nodes that an elastic launcher keeps for failures are paid for, too.
int64_t nodes_paid_for(const Rehearsal& rehearsal) {
  const int64_t used =
      rehearsal.scenario->is_bare_program()
          ? int64_t{rehearsal.run.machine.cluster.nodes}
          : nodes_used(rehearsal.run.preparation, rehearsal.run.preparation.placement.nodes);
  const std::optional<ClusterSpec>& spec = rehearsal.scenario->cluster;
  if (rehearsal.results.elastic && spec && spec->nodes) {
    return std::max(used, spec->nodes->value);
  }
  return used;
}

// Of elastic jobs those of all nodes that are paid for.
int64_t gpus_paid_for(const Rehearsal& rehearsal) {
  if (rehearsal.run.preparation.placement.cpu) {
    return 0;
  }
  const int64_t per_node = std::ssize(rehearsal.run.preparation.placement.devices);
  return rehearsal.results.elastic && per_node > 0 ? nodes_paid_for(rehearsal) * per_node
                                                   : rehearsal.results.devices;
}

}  // namespace

std::string why_no_cost(const Rehearsal& rehearsal) {
  if (!rehearsal.ran() || is_real(rehearsal.world)) {
    return "nothing was predicted";
  }
  if (const std::string why = rehearsal.why_no_prediction(); !why.empty()) {
    return why;
  }
  const std::optional<Price> price = price_of(rehearsal);
  if (!price) {
    return "no price is known: write cluster: {price: {amount: 2.5, currency: USD, per: gpu_hour}}";
  }
  return price->by_gpu && gpus_paid_for(rehearsal) == 0
             ? "no GPU trains here: write price: {.., per: node_hour}"
             : "";
}

std::optional<Cost> cost_of(const Rehearsal& rehearsal) {
  if (!why_no_cost(rehearsal).empty()) {
    return std::nullopt;
  }
  const Price price = *price_of(rehearsal);
  const Prediction& prediction = rehearsal.results.prediction;
  Cost cost;
  cost.currency = price.currency;
  cost.amount = price.amount;
  cost.by_gpu = price.by_gpu;
  cost.source = price.source;
  cost.units = price.by_gpu ? gpus_paid_for(rehearsal) : nodes_paid_for(rehearsal);
  cost.per_hour = price.amount * static_cast<double>(cost.units);
  cost.total = cost.per_hour * seconds(prediction.total_time) / seconds_per_hour;
  const double per_second = cost.per_hour / seconds_per_hour;
  if (prediction.samples_per_s && *prediction.samples_per_s > 0) {
    cost.per_million_samples = per_second / *prediction.samples_per_s * million;
  }
  if (prediction.tokens_per_s && *prediction.tokens_per_s > 0) {
    cost.per_billion_tokens = per_second / *prediction.tokens_per_s * billion;
  }
  const std::optional<ElasticResults>& elastic = rehearsal.results.elastic;
  if (elastic && elastic->forecast && elastic->forecast->goodput > 0) {
    cost.with_failures = cost.total / elastic->forecast->goodput;
  }
  return cost;
}

std::string price_text(const Cost& cost) {
  return fmt::format("{} x {:g} {}/h, {}", plural(cost.units, cost.by_gpu ? "GPU" : "node"),
                     cost.amount, cost.currency, cost.source);
}

std::string money_text(double amount, const std::string& currency) {
  constexpr double whole_from = 1000;
  if (amount >= whole_from && amount < 1e15) {
    std::string digits = fmt::format("{:.0f}", amount);
    for (size_t at = digits.size(); at > 3; at -= 3) {
      digits.insert(at - 3, ",");
    }
    return digits + " " + currency;
  }
  return amount >= 1 ? fmt::format("{:.2f} {}", amount, currency)
                     : fmt::format("{:.3g} {}", amount, currency);
}

}  // namespace lockstep::cli
