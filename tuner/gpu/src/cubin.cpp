#include "gpu/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "model/device.h"

namespace tunerd::gpu {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint8_t kFormatNval = 1, kFormatSval = 4;  // between them: bytes (2) and half words (3)
constexpr std::uint8_t kAttributeKparamInfo = 0x17;

Unexpected corrupt(const std::string& what) { return fail(Code::corrupt, "Not a usable cubin: " + what); }

template <class T>
bool read_at(std::string_view bytes, std::uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

Result<std::string_view> slice(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return corrupt("a section leaves the file");
  return bytes.substr(offset, size);
}

// .nv.info.<entry>: records of {format u8, attribute u8, value u16}, format 4 followed by value bytes of payload.
Result<std::vector<KernelParameter>> read_parameters(std::string_view info) {
  std::vector<KernelParameter> out;
  std::uint64_t at = 0;
  while (at + 4 <= info.size()) {
    std::uint8_t format = 0, attribute = 0;
    std::uint16_t value = 0;
    read_at(info, at, format);
    read_at(info, at + 1, attribute);
    read_at(info, at + 2, value);
    at += 4;
    if (format < kFormatNval || format > kFormatSval) return corrupt("unknown record format " + std::to_string(format));
    if (format != kFormatSval) continue;
    TRY_ASSIGN(const auto payload, slice(info, at, value));
    at += (value + 3u) & ~std::uint64_t{3};
    if (attribute != kAttributeKparamInfo) continue;
    // index u32, ordinal u16, offset u16, then a word whose upper 14 bits are the size
    std::uint16_t ordinal = 0, offset = 0;
    std::uint32_t packed = 0;
    if (!read_at(payload, 4, ordinal) || !read_at(payload, 6, offset) || !read_at(payload, 8, packed))
      return corrupt("a short parameter record");
    out.push_back({ordinal, offset, packed >> 18});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
  return out;
}

// The compute capability in e_flags: its second byte since ABI version 8 (CUDA 13), the lowest before.
int compute_capability(const Elf64_Ehdr& header) {
  constexpr std::uint8_t kSecondByteSince = 8;
  return static_cast<int>(header.e_ident[EI_ABIVERSION] >= kSecondByteSince ? header.e_flags >> 8 & 0xff
                                                                            : header.e_flags & 0xff);
}

std::int64_t expected_bytes(const Argument& argument) {
  if (argument.kind == Argument::Kind::tensor_map) return 128;
  if (argument.kind == Argument::Kind::scalar) return argument.type == "i64" ? 8 : 4;
  return 8;
}

}  // namespace

Result<CubinKernel> find_kernel(std::string_view cubin, const std::string& entry) {
  Elf64_Ehdr header;
  if (!read_at(cubin, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return corrupt("no ELF header");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachineCuda)
    return corrupt("not a 64-bit CUDA ELF");
  Elf64_Shdr names_header;
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum ||
      !read_at(cubin, header.e_shoff + std::uint64_t{header.e_shstrndx} * sizeof(Elf64_Shdr), names_header))
    return corrupt("no section names");
  TRY_ASSIGN(const auto names, slice(cubin, names_header.sh_offset, names_header.sh_size));
  const auto name_at = [&](std::uint32_t offset) {
    if (offset >= names.size()) return std::string_view{};
    const auto rest = names.substr(offset);
    return rest.substr(0, rest.find('\0'));
  };
  CubinKernel kernel;
  std::vector<std::string> entries;
  bool found = false;
  for (std::uint32_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read_at(cubin, header.e_shoff + std::uint64_t{i} * sizeof(Elf64_Shdr), section))
      return corrupt("the section table leaves the file");
    const auto name = name_at(section.sh_name);
    if (name.substr(0, 6) == ".text.") {
      entries.emplace_back(name.substr(6));
      if (name.substr(6) == entry) {
        TRY(slice(cubin, section.sh_offset, section.sh_size));
        found = true;
      }
    } else if (name == ".nv.info." + entry) {
      TRY_ASSIGN(const auto info, slice(cubin, section.sh_offset, section.sh_size));
      TRY_ASSIGN(kernel.parameters, read_parameters(info));
    }
  }
  if (!found) {
    auto error = unknown_name("entry", entry, entries);
    error.value().code = Code::not_found;
    error.value().message = "The cubin has no kernel " + entry;
    return error;
  }
  kernel.entry = entry;
  kernel.cc = compute_capability(header);
  return kernel;
}

Status check_parameters(const CubinKernel& kernel, const Recipe& recipe) {
  if (kernel.parameters.size() != recipe.arguments.size()) {
    auto error = bad_input("arguments", std::to_string(recipe.arguments.size()),
                           std::to_string(kernel.parameters.size()) + ", as the kernel " + kernel.entry + " has");
    error.value().message = "The manifest's arguments are not the kernel's parameters";
    return error;
  }
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const auto wanted = expected_bytes(recipe.arguments[i]);
    if (kernel.parameters[i].size_bytes == wanted) continue;
    auto error = bad_input(
        "arguments[" + std::to_string(i) + "] (" + recipe.arguments[i].name + ")", std::to_string(wanted) + " bytes",
        std::to_string(kernel.parameters[i].size_bytes) + " bytes, as the kernel " + kernel.entry + " declares");
    error.value().message = "The manifest's arguments are not the kernel's parameters";
    return error;
  }
  return {};
}

Status check_arch(const CubinKernel& kernel, const std::string& arch) {
  TRY_ASSIGN(const int wanted, arch_cc(arch));
  if (kernel.cc == wanted) return {};
  auto error = bad_input("arch", "sm_" + std::to_string(kernel.cc), arch);
  error.value().code = Code::corrupt;
  error.value().message = "The cubin of " + kernel.entry + " is for another architecture";
  return error;
}

}  // namespace tunerd::gpu
