// Folders below mount points at which nothing is mounted.
#include "common/base/missing_mount.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

class MissingMountTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) { folder_.Write(name, text); }
  absl::Status Check(const std::string& path) { return CheckMounted(path, folder_ / "fstab", folder_ / "mounts"); }
  TempFolder folder_;
};

TEST_F(MissingMountTest, WhatIsNotMountedIsNamed) {
  Write("fstab",
        "# what the installer wrote\n"
        "UUID=1 / ext4 defaults 0 1\n"
        "UUID=2 none swap sw 0 0\n"
        "UUID=3 /mnt/big/ ext4 nofail 0 2\n"
        "nas:/x /mnt/my\\040share nfs noauto 0 0\n");
  Write("mounts", "/dev/vda / ext4 rw 0 0\nproc /proc proc rw 0 0\n");
  EXPECT_EQ(Check("/mnt/big").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Check("/mnt/big/files").message()), HasSubstr("/mnt/big/files lies below /mnt/big, where "));
  EXPECT_THAT(std::string(Check("/mnt/other/../big/files").message()), HasSubstr("not mounted; mount it (mount /mnt/big)"));
  EXPECT_THAT(std::string(Check("/mnt/my share/jobs").message()), HasSubstr("lies below /mnt/my share"));
  EXPECT_TRUE(Check("/mnt/bigger").ok());
  EXPECT_TRUE(Check("/mnt").ok());
  EXPECT_TRUE(Check("/srv/files").ok());
}

TEST_F(MissingMountTest, WhatIsMountedOrWillBeWhenItIsUsedIsFine) {
  Write("fstab", "UUID=3 /mnt/big ext4 nofail 0 2\nnas:/x /mnt/share nfs noauto,x-systemd.automount 0 0\n");
  Write("mounts", "/dev/vdb /mnt/big ext4 rw 0 0\nsystemd-1 /mnt/share autofs rw 0 0\n");
  EXPECT_TRUE(Check("/mnt/big/files").ok());
  EXPECT_TRUE(Check("/mnt/share/files").ok());
}

TEST_F(MissingMountTest, LinksAreFollowed) {
  std::filesystem::create_directories(folder_ / "big/files");
  std::filesystem::create_directory_symlink(folder_ / "big/files", folder_ / "link");
  Write("fstab", absl::StrCat("UUID=3 ", folder_.path(), "/big ext4 nofail 0 2\n"));
  Write("mounts", "/dev/vda / ext4 rw 0 0\nproc /proc proc rw 0 0\n");
  EXPECT_EQ(Check(folder_ / "link/job").code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(MissingMountTest, TablesThatAreNotThereSayNothing) {
  EXPECT_TRUE(Check("/mnt/big").ok());
  Write("fstab", "UUID=3 /mnt/big ext4 nofail 0 2\n");
  EXPECT_TRUE(Check("/mnt/big").ok());
}

}  // namespace
}  // namespace motley
