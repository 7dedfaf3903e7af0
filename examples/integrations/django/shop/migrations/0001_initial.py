"""The table of orders."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Create the table."""

    initial = True
    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(primary_key=True)),
                ("item", models.CharField(max_length=100)),
                ("receipt", models.CharField(max_length=200, default="")),
            ],
        )
    ]
