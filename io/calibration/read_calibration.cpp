#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "io/calibration/calibration_file.hpp"
#include "io/calibration/calibration_format.hpp"
#include "io/scenario/load/load.hpp"

namespace lockstep {

namespace {

using Json = nlohmann::json;

constexpr const char* make_it_anew = "recreate it: lockstep calibrate -o FILE";
constexpr double longest_s = 1e6;
constexpr int64_t largest_size = int64_t{1} << 60;
constexpr int32_t most_ranks = 1 << 20;
constexpr size_t longest_text = 4096;
constexpr size_t most_entries = 2'000;

[[noreturn]] void refuse(const std::string& place, const std::string& what) {
  throw CalibrationError(place.empty() ? "the file " + what : fmt::format("{}: {}", place, what),
                         make_it_anew);
}

/// An object of the file. Each key is asked for once; `finish` refuses what nobody asked for.
class ObjectReader {
 public:
  ObjectReader(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) {
      refuse(place_, "is not an object");
    }
  }

  const Json& at(const char* key) {
    ++asked_;
    const auto found = json_.find(key);
    if (found == json_.end()) {
      refuse(place_, fmt::format("`{}` is missing", key));
    }
    return *found;
  }
  std::string place_of(const char* key) const { return fmt::format("{}/{}", place_, key); }

  std::string text(const char* key) {
    const Json& value = at(key);
    if (!value.is_string() || value.get_ref<const std::string&>().size() > longest_text) {
      refuse(place_of(key), "is not a text, or is too long");
    }
    return value.get<std::string>();
  }
  double number(const char* key, double most) {
    const Json& value = at(key);
    const double given = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(given) || given < 0 || given > most) {
      refuse(place_of(key), fmt::format("is not a number from 0 to {:g}", most));
    }
    return given;
  }
  int64_t whole(const char* key, int64_t least, int64_t most) {
    const Json& value = at(key);
    const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= largest_size
                                                 : value.is_number_integer();
    if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most) {
      refuse(place_of(key), fmt::format("is not a whole number from {} to {}", least, most));
    }
    return value.get<int64_t>();
  }
  bool truth(const char* key) {
    const Json& value = at(key);
    if (!value.is_boolean()) {
      refuse(place_of(key), "is neither true nor false");
    }
    return value.get<bool>();
  }

  /// Calls `read` with an ObjectReader for each item of the list.
  template <class Read>
  void each(const char* key, const Read& read) {
    const Json& list = at(key);
    if (!list.is_array() || list.size() > most_entries) {
      refuse(place_of(key), "is not a list, or is too long");
    }
    for (size_t index = 0; index < list.size(); ++index) {
      ObjectReader item(list[index], fmt::format("{}/{}", place_of(key), index));
      read(item);
      item.finish();
    }
  }

  void finish() const {
    if (json_.size() != asked_) {
      refuse(place_, "holds a key that this version does not know");
    }
  }
  const std::string& place() const { return place_; }

 private:
  const Json& json_;
  std::string place_;
  size_t asked_ = 0;
};

Time time_of(ObjectReader& reader, const char* key) {
  return Time(std::llround(reader.number(key, longest_s) * 1e12));
}

MeasuredTime measured_time_of(ObjectReader& reader) {
  MeasuredTime time;
  time.low = time_of(reader, "low_s");
  time.median = time_of(reader, "median_s");
  time.high = time_of(reader, "high_s");
  if (time.low > time.median || time.median > time.high) {
    refuse(reader.place(), "low_s, median_s and high_s must not decrease");
  }
  return time;
}

int32_t ranks_of(ObjectReader& reader) {
  return static_cast<int32_t>(reader.whole("ranks", 1, most_ranks));
}

/// The enumerator up to `last` whose name this is; nothing for an empty name.
template <class Enumeration>
std::optional<Enumeration> named(ObjectReader& reader, const char* key, Enumeration last) {
  const std::string name = reader.text(key);
  if (name.empty()) {
    return std::nullopt;
  }
  for (int number = 0; number <= static_cast<int>(last); ++number) {
    if (name_of(static_cast<Enumeration>(number)) == name) {
      return static_cast<Enumeration>(number);
    }
  }
  refuse(reader.place_of(key), fmt::format("`{}` is not known", name));
}

CalibrationOrigin origin_of(const Json& json) {
  ObjectReader reader(json, "/origin");
  CalibrationOrigin origin;
  origin.lockstep_version = reader.text("lockstep_version");
  origin.backend = reader.text("backend");
  if (origin.backend != "gloo" && origin.backend != "nccl") {
    refuse(reader.place_of("backend"), "is neither gloo nor nccl");
  }
  origin.device = reader.text("device");
  origin.preset = reader.text("preset");
  origin.host_cpu = reader.text("host_cpu");
  origin.cores = static_cast<int32_t>(reader.whole("cores", 1, most_ranks));
  origin.ranks = ranks_of(reader);
  origin.libraries = reader.text("libraries");
  origin.driver = reader.text("driver");
  origin.date = reader.text("date");
  origin.command = reader.text("command");
  origin.load_average = reader.number("load_average", longest_s);
  origin.is_quick = reader.truth("is_quick");
  reader.finish();
  return origin;
}

template <class Enumeration>
Enumeration required(ObjectReader& reader, const char* key, Enumeration last) {
  const std::optional<Enumeration> value = named(reader, key, last);
  if (!value) {
    refuse(reader.place_of(key), "is empty");
  }
  return *value;
}

KernelCurve kernel_curve_of(ObjectReader& reader) {
  KernelCurve curve;
  curve.kernel = required(reader, "kernel", last_kernel);
  curve.layer = named(reader, "layer", last_layer_kind);
  curve.dtype = required(reader, "dtype", DType::uint8);
  curve.ranks = ranks_of(reader);
  reader.each("points", [&curve](ObjectReader& item) {
    KernelPoint point;
    point.flops = Flops(item.whole("flops", 0, largest_size));
    point.traffic = Bytes(item.whole("bytes", 0, largest_size));
    point.time = measured_time_of(item);
    curve.points.push_back(point);
  });
  return curve;
}

TransferCurve transfer_curve_of(ObjectReader& reader) {
  TransferCurve curve;
  curve.kind = required(reader, "operation", OpKind::event);
  curve.ranks = ranks_of(reader);
  reader.each("points", [&curve](ObjectReader& item) {
    TransferPoint point;
    point.bytes = Bytes(item.whole("bytes", 0, largest_size));
    point.time = measured_time_of(item);
    if (!curve.points.empty() && point.bytes <= curve.points.back().bytes) {
      refuse(item.place_of("bytes"), "is not above that of the point before");
    }
    curve.points.push_back(point);
  });
  if (curve.points.empty()) {
    refuse(reader.place_of("points"), "is empty");
  }
  return curve;
}

HeldOut held_out_of(ObjectReader& reader) {
  HeldOut one;
  one.part = required(reader, "part", HeldOut::Part::communication);
  one.training = reader.text("training");
  one.measured = time_of(reader, "measured_s");
  one.predicted = time_of(reader, "predicted_s");
  return one;
}

/// That no two entries of a list measure the same.
template <class Entry, class Alike>
void refuse_twins(const std::vector<Entry>& entries, const char* place, const Alike& alike) {
  for (size_t index = 0; index < entries.size(); ++index) {
    for (size_t before = 0; before < index; ++before) {
      if (alike(entries[index], entries[before])) {
        refuse(fmt::format("{}/{}", place, index),
               fmt::format("measures the same as {}/{}", place, before));
      }
    }
  }
}

void refuse_twins(const Calibration& calibration) {
  refuse_twins(calibration.launch_overheads, "/launch_overheads",
               [](const LaunchOverhead& a, const LaunchOverhead& b) { return a.ranks == b.ranks; });
  refuse_twins(calibration.kernels, "/kernels", [](const KernelCurve& a, const KernelCurve& b) {
    return a.kernel == b.kernel && a.layer == b.layer && a.dtype == b.dtype && a.ranks == b.ranks;
  });
  refuse_twins(calibration.transfers, "/transfers",
               [](const TransferCurve& a, const TransferCurve& b) {
                 return a.kind == b.kind && a.ranks == b.ranks;
               });
}

void check_version(ObjectReader& reader) {
  if (reader.text("format") != calibration_format) {
    refuse("/format", fmt::format("is not `{}`", calibration_format));
  }
  if (reader.whole("version", 0, largest_size) != calibration_version) {
    refuse("/version",
           fmt::format("is not {}, the version that this program reads", calibration_version));
  }
}

}  // namespace

Calibration calibration_of(std::string_view text) {
  if (text.size() > calibration_bytes_max) {
    refuse("", fmt::format("is longer than {} MiB", calibration_bytes_max >> 20));
  }
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    refuse("", "is not JSON");
  }
  ObjectReader reader(json, "");
  check_version(reader);
  Calibration calibration;
  calibration.origin = origin_of(reader.at("origin"));
  reader.each("launch_overheads", [&calibration](ObjectReader& item) {
    const int32_t ranks = ranks_of(item);
    calibration.launch_overheads.push_back({ranks, measured_time_of(item)});
  });
  reader.each("held_out", [&calibration](ObjectReader& item) {
    calibration.held_out.push_back(held_out_of(item));
  });
  reader.each("kernels", [&calibration](ObjectReader& item) {
    calibration.kernels.push_back(kernel_curve_of(item));
  });
  reader.each("transfers", [&calibration](ObjectReader& item) {
    calibration.transfers.push_back(transfer_curve_of(item));
  });
  reader.finish();
  refuse_twins(calibration);
  return calibration;
}

Calibration read_calibration(const std::string& path) {
  auto text = read_file_from_disk(path, calibration_bytes_max);
  if (const auto* error = std::get_if<FileError>(&text)) {
    throw CalibrationError(error->message, make_it_anew);
  }
  return calibration_of(std::get<std::string>(text));
}

}  // namespace lockstep
