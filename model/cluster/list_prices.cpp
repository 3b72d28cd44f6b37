// Prices of cloud nodes. Each was read off a copy of the provider's own price list; nodes whose
// price no such copy had are left out.
#include "model/cluster/list_prices.hpp"

#include <algorithm>
#include <iterator>

namespace lockstep {

namespace {

constexpr std::string_view virginia = "on demand, Linux, us-east-1";
constexpr std::string_view iowa = "on demand, us-central1";
constexpr std::string_view east_us = "pay as you go, Linux, eastus";

// By way of github.com/tsaol/aws-gpu, which instances.vantage.sh feeds from the AWS Pricing API.
constexpr std::string_view amazon = "AWS Pricing API, 2026-08-26";
// `dstack offer -b aws` in github.com/dstackai/dstack/pull/4110.
constexpr std::string_view amazon_by_dstack = "AWS Pricing API, 2026-08-06";
// By way of github.com/Cyclenerd/google-cloud-pricing-cost-calculator (pricing.yml).
constexpr std::string_view google = "Google Cloud Billing Catalog API, 2025-03-06";
// By way of github.com/datareceipts/data-receipts (109-gpu-pricing).
constexpr std::string_view azure = "Azure Retail Prices API, 2026-11-09";

constexpr ListPrice prices[] = {
    {"p3.16xlarge", 24.48, virginia, amazon},
    {"p3dn.24xlarge", 31.212, virginia, amazon},
    {"p4d.24xlarge", 21.957642, virginia, amazon},
    {"p4de.24xlarge", 27.44705, virginia, amazon},
    {"p5.48xlarge", 55.04, virginia, amazon},
    {"p5en.48xlarge", 63.296, virginia, amazon_by_dstack},
    {"g4dn.12xlarge", 3.912, virginia, amazon},
    {"g4dn.metal", 7.824, virginia, amazon},
    {"g5.xlarge", 1.006, virginia, amazon},
    {"g5.12xlarge", 5.672, virginia, amazon},
    {"g5.48xlarge", 16.288, virginia, amazon},
    {"g6.48xlarge", 13.3504, virginia, amazon},
    {"g6e.48xlarge", 30.13118, virginia, amazon},
    {"a2-highgpu-8g", 29.38708, iowa, google},
    {"a2-ultragpu-8g", 40.550383, iowa, google},
    {"a3-highgpu-8g", 88.49, iowa, google},
    {"nd96asr-v4", 27.197, east_us, azure},
    {"nd96isr-h100-v5", 98.32, east_us, azure},
};

}  // namespace

std::span<const ListPrice> list_prices() { return prices; }

std::optional<ListPrice> list_price_of(std::string_view cluster) {
  const auto* const found = std::ranges::find(prices, cluster, &ListPrice::cluster);
  return found == std::end(prices) ? std::nullopt : std::optional(*found);
}

}  // namespace lockstep
