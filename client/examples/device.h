// The few driver calls an application makes itself, opened at run time: memory, copies, a stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace example {

class Device {
 public:
  // Empty with a reason when there is no driver or no GPU. Throws std::runtime_error when a call fails later on.
  static std::optional<Device> open(std::string& why_not);

  const std::string& name() const { return name_; }
  void* stream() const { return stream_; }
  std::uint64_t allocate(std::size_t bytes) const;  // lives until the process ends
  void upload(std::uint64_t to, const void* from, std::size_t bytes) const;
  void download(void* to, std::uint64_t from, std::size_t bytes) const;  // waits for the stream first

  template <class T>
  std::uint64_t put(const std::vector<T>& values) const {
    const std::uint64_t data = allocate(values.size() * sizeof(T));
    upload(data, values.data(), values.size() * sizeof(T));
    return data;
  }
  template <class T>
  std::vector<T> take(std::uint64_t data, std::size_t count) const {
    std::vector<T> values(count);
    download(values.data(), data, count * sizeof(T));
    return values;
  }

 private:
  Device() = default;
  std::string name_;
  void* stream_ = nullptr;
};

}  // namespace example
